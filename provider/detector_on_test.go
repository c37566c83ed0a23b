//go:build race

package provider_test

// raceDetector: the tests run several times slower.
const raceDetector = true

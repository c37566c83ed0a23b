//go:build !race

package provider_test

// raceDetector: the tests run at full speed.
const raceDetector = false

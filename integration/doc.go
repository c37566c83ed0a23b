// Package integration holds the tests that need the whole program and other
// real programs beside it: compilers, git, kernels without Landlock. It is
// imported by nobody.
package integration

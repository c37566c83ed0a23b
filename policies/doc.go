// Package policies holds the shipped policy presets and reads the policies of
// users and sessions. It turns documents into one [fence.Policy].
//
// # What it guarantees
//
//   - Reading is strict, in TOML and in JSON alike: an unknown key, a key in
//     another case, a wrong type, a duplicate and a value that cannot be used
//     are errors of the code POLICY_INVALID that name file, line and column
//     and show the place. A document is used whole or not at all.
//   - Every entry of the policy that comes out says where it was written:
//     `preset:NAME`, `file:NAME:LINE` or `session`.
//   - Documents are merged in one order, whatever order they are given in:
//     presets, files, the session. Lists append, single values replace.
//   - A default that a document takes away is named in Policy.Overrides.
//   - A policy file inside the workspace that it is for is never read: what
//     runs in the fence could have written it.
//   - [Build] and [Environment] are pure: they do no I/O.
//
// # What it does not do
//
// It enforces nothing and resolves no links: fence.New does, and may refuse a
// root that a document names. It reads no environment: the caller hands it in.
package policies

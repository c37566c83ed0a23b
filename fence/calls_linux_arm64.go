package fence

// auditArch is AUDIT_ARCH_AARCH64 (linux/audit.h).
const auditArch = 0xC00000B7

// x32Bit: there is no second ABI behind this architecture value. 32-bit
// programs have a value of their own and are refused by it.
const x32Bit = 0

// callsOfArch: arm64 never had the calls without a directory descriptor.
var callsOfArch []Call

#!/usr/bin/env bash
# The one test command: installs what the tests need, runs everything, names what was skipped.
#
#   ./test.sh          everything that belongs to a change (under 20 minutes)
#   ./test.sh bench    the benchmarks
#   ./test.sh soak     the long forms of the races and property tests
#
# With CI=true a skip that this machine could have run is a failure.
set -uo pipefail
cd "$(dirname "$0")"

export CGO_ENABLED=0
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
fail=0
step() { printf '\n== %s\n' "$*"; }
bad() { printf 'FAILED: %s\n' "$*"; fail=1; }

# What the tests run, beside Go: program, or a file of it by its path, and the
# Debian package that has it.
needs=(git:git gcc:gcc python3:python3 perl:perl-base setpriv:util-linux script:bsdutils strace:strace rsync:rsync
       setfattr:attr chattr:e2fsprogs getfacl:acl zsh:zsh bash:bash make:make mkfifo:coreutils
       gio:libglib2.0-bin /usr/libexec/gvfsd-trash:gvfs-daemons '/usr/lib/*/gio/modules/libgvfsdbus.so:gvfs'
       dbus-run-session:dbus-daemon trash-put:trash-cli bindfs:bindfs mkfs.ext4:e2fsprogs)
install_needs() {
  local missing=() n
  for n in "${needs[@]}"; do
    command -v "${n%%:*}" >/dev/null 2>&1 || compgen -G "${n%%:*}" >/dev/null || missing+=("${n##*:}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "not installed, and only root on Debian or Ubuntu can install them here: ${missing[*]}"
    return 0 # the tests that need them say so
  fi
  step "installing ${missing[*]}"
  apt-get -qq update >/dev/null 2>&1 || true
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null || bad "apt-get install ${missing[*]}"
}

case "${1:-}" in
bench) exec go test -run '^$' -bench . -benchtime "${BENCHTIME:-1s}" ./... ;;
soak) export WATTLE_SOAK=1 ;;
'') ;;
*) echo "usage: ./test.sh [bench|soak]" >&2; exit 2 ;;
esac

install_needs

step "gofmt"
f=$(gofmt -l $(git ls-files '*.go')); [ -z "$f" ] || bad "gofmt would change: $f"

step "vet and build on every system"
go vet ./... || bad "go vet"
for t in linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
  GOOS=${t%/*} GOARCH=${t#*/} go vet ./... || bad "go vet for $t"
done

step "staticcheck"
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./... || bad "staticcheck"

step "banned calls"
./.ci/bans || bad "banned calls"

# The race detector needs cgo, and cgo only: what ships is built without it.
step "tests with the race detector"
out=$(mktemp)
trap 'rm -f "$out"' EXIT
CGO_ENABLED=1 go test -race -count=1 -timeout "${TEST_TIMEOUT:-15m}" -v ./... 2>&1 |
  tee "$out" | grep --line-buffered -E '^(--- FAIL|FAIL|ok |panic:)'
code=${PIPESTATUS[0]}
if [ $code -ne 0 ]; then
  bad "go test"
  # What the tests that failed have said.
  awk 'NR == FNR { if (/^ *--- FAIL: /) failed[$3] = 1; next }
       /^=== (RUN|CONT|NAME)/ { cur = $3; next }
       cur in failed || /^panic:|DATA RACE|^FAIL/ { print cur ": " $0 }' "$out" "$out" | head -n 300
fi

# The same contract on the half that other systems build: os.Root instead of
# directory handles, no unnamed files, no exchange.
step "the file provider as other systems have it"
go vet -tags portable ./internal/anchor ./provider/... || bad "go vet -tags portable"
go test -tags portable -count=1 -timeout 5m -v -run 'TestContract$' ./provider 2>&1 |
  tee -a "$out" | grep --line-buffered -E '^(--- FAIL|FAIL|ok |panic:)'
[ "${PIPESTATUS[0]}" -eq 0 ] || bad "go test -tags portable"
go test -tags portable -count=1 ./internal/anchor || bad "go test -tags portable ./internal/anchor"

step "skipped"
passed=$(grep -cE '^ *--- PASS' "$out"); failed=$(grep -cE '^ *--- FAIL' "$out"); skipped=$(grep -cE '^ *--- SKIP' "$out")
# By reason, with every test that gave it.
awk '/^=== (RUN|CONT|NAME)/ { cur = $3 }
     /SKIP(-CAPABLE)?: / && !/^ *--- SKIP: / { r = $0; sub(/.*SKIP/, "SKIP", r); why[cur] = r }
     /^ *--- SKIP: / { r = ($3 in why) ? why[$3] : "no reason given"; n[r]++; names[r] = names[r] "\n      " $3 }
     END { for (r in n) printf "  %d × %s%s\n", n[r], r, names[r] }' "$out"
if [ "${CI:-}" = true ] && grep -q 'SKIP-CAPABLE: ' "$out"; then
  bad "tests were skipped that this machine could have run"
fi
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
exit $fail

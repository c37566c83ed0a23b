package api

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/fence"
)

// Numbers of JSON-RPC errors (JSON-RPC 2.0 section 5.1, LSP 3.17 for -32002 and
// -32800, PROTOCOL section 1 for the others).
const (
	numParse          = -32700
	numInvalidRequest = -32600
	numMethodNotFound = -32601
	numInvalidParams  = -32602
	numInternal       = -32603
	numNotInitialized = -32002
	numBusy           = -32005
	numFS             = -32010
	numSandbox        = -32011
	numScratch        = -32012
	numTrash          = -32013
	numSession        = -32014
	numPolicy         = -32015
	numCancelled      = -32800
)

// Stable codes of malformed traffic. They are `data.code` beside the numbers of
// JSON-RPC.
const (
	CodeParseError     = "PARSE_ERROR"      // -32700
	CodeInvalidRequest = "INVALID_REQUEST"  // -32600
	CodeMethodNotFound = "METHOD_NOT_FOUND" // -32601
	CodeInvalidParams  = "INVALID_PARAMS"   // -32602, with `member`
	CodeInternal       = "INTERNAL_ERROR"   // -32603
	CodeNotInitialized = "NOT_INITIALIZED"  // -32002
	CodeBusy           = "BUSY"             // -32005
	CodeCancelled      = "CANCELLED"        // -32800
)

// Stable codes of sessions, turns, processes and watches that travel (-32014).
const (
	CodeSessionNotFound  = "SESSION_NOT_FOUND"
	CodeSessionToken     = "SESSION_TOKEN_INVALID"
	CodeSessionWorkspace = "SESSION_WORKSPACE_INVALID"
	CodeSessionLimit     = "SESSION_LIMIT"
	CodeTurnNotFound     = "TURN_NOT_FOUND"
	CodeTurnActive       = "TURN_ACTIVE"
	CodeProcessNotFound  = "PROCESS_NOT_FOUND"
	CodeProcessExists    = "PROCESS_EXISTS"
	CodeProcessLimit     = "PROCESS_LIMIT"
	CodeProcessTimeout   = "PROCESS_WAIT_TIMEOUT"
	CodeWatchNotFound    = "WATCH_NOT_FOUND"
	CodeWatchLimit       = "WATCH_LIMIT"
)

// codeTooLarge answers a result that fits in no reply.
const codeTooLarge = "FS_TOO_LARGE"

// numbers are the numbers of the families of stable codes.
var numbers = []struct {
	family string
	number int
}{
	{"FS_", numFS}, {"SANDBOX_", numSandbox}, {"SCRATCH_", numScratch}, {"TRASH_", numTrash},
	{"SESSION_", numSession}, {"TURN_", numSession}, {"PROCESS_", numSession}, {"WATCH_", numSession},
	{"POLICY_", numPolicy},
}

// NumberOf is the number that goes with a stable code (PROTOCOL section 1), and
// false for a code of no known family.
func NumberOf(stable string) (int, bool) {
	for _, f := range numbers {
		if strings.HasPrefix(stable, f.family) {
			return f.number, true
		}
	}
	switch stable {
	case CodeParseError:
		return numParse, true
	case CodeInvalidRequest:
		return numInvalidRequest, true
	case CodeMethodNotFound:
		return numMethodNotFound, true
	case CodeInvalidParams:
		return numInvalidParams, true
	case CodeInternal:
		return numInternal, true
	case CodeNotInitialized:
		return numNotInitialized, true
	case CodeBusy:
		return numBusy, true
	case CodeCancelled:
		return numCancelled, true
	}
	return 0, false
}

// Error is an error as it travels. On the side of the client it is what a call
// returns. It is immutable.
type Error struct {
	// Code is the number of JSON-RPC. Branch on [Error.Stable] instead.
	Code    int    `json:"code"`
	Message string `json:"message"`
	// Data is an object with at least the member `code`. For FS_SANDBOX_DENIED
	// it is the whole [fence.Denial].
	Data jsontext.Value `json:"data,omitzero"`
}

// NewError makes an error with a stable code of a known family. fields are
// further members of its data, in pairs of name and value; values must be
// encodable. It is meant for codes known at compile time, and an unknown family
// becomes INTERNAL_ERROR.
func NewError(stable, message string, fields ...any) *Error {
	n, ok := NumberOf(stable)
	if !ok {
		stable, n = CodeInternal, numInternal
	}
	return &Error{Code: n, Message: validText(message), Data: dataOf(stable, fields...)}
}

// Error is the stable code and the message.
func (e *Error) Error() string {
	if s := e.Stable(); s != "" {
		return s + ": " + e.Message
	}
	return fmt.Sprintf("%d: %s", e.Code, e.Message)
}

// Stable is `data.code`, or "" when the peer sent none.
func (e *Error) Stable() string {
	var d struct {
		Code string `json:"code"`
	}
	if len(e.Data) == 0 || json.Unmarshal(e.Data, &d) != nil {
		return ""
	}
	return d.Code
}

// Denial is the refusal by the fence that the error carries, or nil.
func (e *Error) Denial() *fence.Denial {
	if e.Stable() != fence.CodeSandboxDenied {
		return nil
	}
	d := new(fence.Denial)
	if json.Unmarshal(e.Data, d) != nil {
		return nil
	}
	return d
}

// Is makes errors equal that have the same stable code, so that
// errors.Is(err, api.NewError(api.CodeBusy, "")) works.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code && t.Stable() == e.Stable()
}

// InvalidParams refuses a member of the parameters, named by its JSON pointer
// (RFC 6901), for instance "/expected/kind".
func InvalidParams(member, format string, args ...any) *Error {
	return paramsError(member, fmt.Sprintf(format, args...))
}

func paramsError(member, text string) *Error {
	at := ""
	if member != "" {
		at = " " + clip(member)
	}
	return &Error{
		Code:    numInvalidParams,
		Message: validText("parse parameters" + at + ": " + text),
		Data:    dataOf(CodeInvalidParams, "member", pointerOf(member)),
	}
}

// pointerOf keeps the name that a client made up from filling the answer.
func pointerOf(member string) string {
	if len(member) > 1024 {
		return clip(member)
	}
	return member
}

func protocolError(number int, stable, format string, args ...any) *Error {
	return &Error{Code: number, Message: validText(fmt.Sprintf(format, args...)), Data: dataOf(stable)}
}

// dataOf makes the data of an error: the code, then what else is known. A
// value that cannot be encoded is left out rather than the error.
func dataOf(stable string, fields ...any) jsontext.Value {
	b := append([]byte(`{"code":`), encodeText(stable)...)
	return append(append(b, members(fields...)...), '}')
}

// members writes pairs of name and value, each behind a comma.
func members(fields ...any) []byte {
	var b []byte
	for i := 0; i+1 < len(fields); i += 2 {
		name, ok := fields[i].(string)
		if !ok || fields[i+1] == "" {
			continue
		}
		v, err := json.Marshal(fields[i+1], outgoing)
		if err != nil {
			continue
		}
		b = append(append(append(append(b, ','), encodeText(name)...), ':'), v...)
	}
	return b
}

// validText shows bytes that are no UTF-8 as U+FFFD.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func encodeText(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, validText(s))
	return b
}

// outgoing encodes what we send. A path or a message may hold bytes that are
// no UTF-8: they are shown as U+FFFD, for a denial that cannot be delivered
// would be worse. Maps come in the order of their keys, so that equal values
// give equal text.
var outgoing = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// incoming decodes what a client sends (PROTOCOL section 1, strict JSON).
// Duplicate names, invalid UTF-8 and text after the value are errors by
// default, names compare case-sensitively.
var incoming = json.RejectUnknownMembers(true)

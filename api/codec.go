package api

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// validator is a parameter type whose members depend on each other. The error
// is best made with [InvalidParams]. It is asked after everything else.
type validator interface{ Validate() error }

// decodeParams fills params, which points to a fresh value of a parameter type.
// After an error its content means nothing.
//
// A member is required when its field has no `omitzero`; it must then be there
// and not be null.
func decodeParams(raw jsontext.Value, s *shape, params any) *Error {
	if len(raw) == 0 {
		raw = jsontext.Value("{}")
	}
	if err := json.Unmarshal(raw, params, incoming); err != nil {
		return decodeError(err)
	}
	if err := checkRequired(s, raw, ""); err != nil {
		return err
	}
	if v, ok := params.(validator); ok {
		if err := v.Validate(); err != nil {
			var e *Error
			if errors.As(err, &e) {
				return e
			}
			return paramsError("", err.Error())
		}
	}
	return nil
}

// decodeError says which member is wrong, and never what it contained.
func decodeError(err error) *Error {
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		at := string(sem.JSONPointer)
		switch {
		case errors.Is(sem.Err, json.ErrUnknownName):
			return paramsError(at, "there is no such member")
		case sem.Err != nil && sem.JSONKind == '"' && isText(sem.GoType):
			return paramsError(at, clip(sem.Err.Error()))
		case sem.Err != nil:
			return paramsError(at, fmt.Sprintf("a %s that does not fit: %s", kindName(sem.JSONKind), clip(sem.Err.Error())))
		}
		return paramsError(at, fmt.Sprintf("a %s has no place here", kindName(sem.JSONKind)))
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return paramsError(string(syn.JSONPointer), "the member appears twice")
		}
		return paramsError(string(syn.JSONPointer), clip(syn.Err.Error()))
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return paramsError("", clip(err.Error()))
}

func isText(t reflect.Type) bool {
	return t != nil && t.Kind() == reflect.String
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "array"
	}
	return "value"
}

// shape is what must be looked at in an object of a struct type.
type shape struct {
	fields   []field // in the order of the struct
	required uint64  // bit i: fields[i] must be there
}

// field is a member that is required, or an object that may have such.
type field struct {
	name  string
	inner *shape // of an object with required members, or nil
}

func (s *shape) empty() bool { return s == nil || len(s.fields) == 0 }

func (s *shape) add(f field, required bool) {
	if len(s.fields) == 64 {
		panic("parameter type with more than 64 members to look at") // at the start of the program
	}
	if required {
		s.required |= 1 << len(s.fields)
	}
	s.fields = append(s.fields, f)
}

// shapeOf derives the shape of a parameter type, once for each.
func shapeOf(t reflect.Type) *shape {
	s := new(shape)
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			in := shapeOf(f.Type)
			for j, g := range in.fields {
				s.add(g, in.required&(1<<j) != 0)
			}
			continue
		}
		g := field{name: name}
		if inner := objectType(f.Type); inner != nil {
			if g.inner = shapeOf(inner); g.inner.empty() {
				g.inner = nil
			}
		}
		if required := !hasOption(opts, "omitzero"); required || g.inner != nil {
			s.add(g, required)
		}
	}
	return s
}

func hasOption(opts, want string) bool {
	for o := range strings.SplitSeq(opts, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// objectType is the struct that a field decodes into member by member, or nil
// for anything that decodes itself.
func objectType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, own := range ownDecoders {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return nil
		}
	}
	return t
}

var ownDecoders = []reflect.Type{
	reflect.TypeFor[json.Unmarshaler](),
	reflect.TypeFor[json.UnmarshalerFrom](),
	reflect.TypeFor[interface{ UnmarshalText([]byte) error }](),
}

// checkRequired looks for members that are missing or null. raw has been
// decoded before, so it is an object without repeated names.
func checkRequired(s *shape, raw jsontext.Value, at string) *Error {
	if s.empty() {
		return nil
	}
	missing := s.required
	dec := borrowDecoder(raw)
	defer returnDecoder(dec)
	if _, err := dec.ReadToken(); err != nil {
		return paramsError(at, "an object is needed")
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return decodeError(err)
		}
		member := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return decodeError(err)
		}
		for i := range s.fields {
			f := &s.fields[i]
			if f.name != member || v.Kind() == 'n' {
				continue
			}
			missing &^= 1 << i
			if f.inner != nil && v.Kind() == '{' {
				if err := checkRequired(f.inner, v, at+"/"+member); err != nil {
					return err
				}
			}
		}
	}
	if missing != 0 {
		return paramsError(at+"/"+s.fields[bits.TrailingZeros64(missing)].name, "the member is missing")
	}
	return nil
}

// decoders are reused: making one costs more than reading a small message.
var decoders = sync.Pool{New: func() any { return new(textDecoder) }}

type textDecoder struct {
	jsontext.Decoder
	buf bytes.Buffer
}

// borrowDecoder gives a decoder of text that leaves repeated names to the
// caller. It reads text where it lies.
func borrowDecoder(text []byte) *textDecoder {
	d := decoders.Get().(*textDecoder)
	d.buf = *bytes.NewBuffer(text)
	d.Reset(&d.buf, jsontext.AllowDuplicateNames(true))
	return d
}

func returnDecoder(d *textDecoder) {
	d.buf = bytes.Buffer{}
	d.Reset(&d.buf) // lets go of the text
	decoders.Put(d)
}

// notification is a message without an id, as we send it.
type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// resultFrame answers the call with that id.
func resultFrame(id, result jsontext.Value) []byte {
	b := make([]byte, 0, len(id)+len(result)+40)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(append(b, `,"result":`...), result...)
	return append(b, '}')
}

// errorFrame answers the call with that id by an error.
func errorFrame(id jsontext.Value, e *Error) []byte {
	v, err := json.Marshal(e, outgoing)
	if err != nil {
		// Only foreign data could do this; the number still counts.
		v, _ = json.Marshal(&Error{Code: e.Code, Message: e.Message}, outgoing)
	}
	b := make([]byte, 0, len(id)+len(v)+40)
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = append(append(b, `,"error":`...), v...)
	return append(b, '}')
}

// encodeResult makes the whole reply in one buffer. A reply above limit is an
// error of its own, and is given up while it is written. A large one is encoded
// twice, first to learn its size: a buffer that grows holds it twice and more.
func encodeResult(id jsontext.Value, result any, limit int64) ([]byte, error) {
	head := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"result":`...)
	w := &boundedBuffer{b: head, keep: min(largeReply, int(limit))}
	if err := json.MarshalWrite(w, result, outgoing); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	switch {
	case w.size > int(limit):
		return nil, tooLarge(w.size, limit)
	case w.size <= w.keep:
		return append(w.b, '}'), nil
	}
	// The encoder writes into a buffer of this type without one of its own, and
	// makes it larger when less than a quarter is free.
	whole := bytes.NewBuffer(make([]byte, 0, len(head)+w.size+w.size/3+1024))
	whole.Write(head)
	if err := json.MarshalWrite(whole, result, outgoing); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(whole.Bytes(), '}'), nil
}

// largeReply is from how many bytes on a reply is measured before it is made.
const largeReply = 1 << 20

// boundedBuffer keeps up to keep bytes and counts all.
type boundedBuffer struct {
	b          []byte
	size, keep int
}

func (w *boundedBuffer) Write(p []byte) (int, error) {
	if w.size += len(p); w.size > w.keep {
		return len(p), nil // only counted
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

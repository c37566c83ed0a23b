package policies

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ParseJSON reads the inline policy of a session. Names are compared in their
// exact case; unknown and doubled members, invalid UTF-8 and anything after
// the value are errors. Every error is an [*Error] of code POLICY_INVALID
// whose message names the member. An object that came in another message can
// be decoded into a [Document] with the same strict options, if [Document.Check]
// is asked afterwards; [Build] asks it in any case.
func ParseJSON(data []byte) (Document, error) {
	if len(data) > maxBytes {
		return Document{}, &Error{Code: CodeInvalid, Name: "session", Msg: fmt.Sprintf("%d bytes are too many, %d at most", len(data), maxBytes)}
	}
	var d Document
	if err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true)); err != nil {
		// The target is partly filled now, and must not be used.
		return Document{}, &Error{Code: CodeInvalid, Name: "session", Msg: jsonMessage(err), Err: err}
	}
	if err := d.Check(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// Check tells whether the document can be used: an [*Error] or nil. Parsed
// documents have been checked.
func (d *Document) Check() error {
	if f := d.check(); f != nil {
		return d.flawError(f)
	}
	return nil
}

func (d *Document) flawError(f *flaw) *Error {
	msg := f.msg
	if f.key != "" {
		msg = f.key + ": " + msg
	}
	return &Error{Code: CodeInvalid, Name: d.Origin.String(), Line: f.line, Msg: msg}
}

// jsonMessage says what is wrong in words that do not change with the library.
func jsonMessage(err error) string {
	var sem *json.SemanticError
	var syn *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syn):
		return fmt.Sprintf("%s is there twice", syn.JSONPointer)
	case errors.As(err, &syn):
		return fmt.Sprintf("malformed JSON at byte %d: %v", syn.ByteOffset, syn.Err)
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &sem):
		return fmt.Sprintf("unknown member %s", sem.JSONPointer)
	case errors.As(err, &sem) && sem.Err != nil:
		return fmt.Sprintf("%s: %v", sem.JSONPointer, sem.Err)
	case errors.As(err, &sem):
		return fmt.Sprintf("%s: a %s does not belong here", sem.JSONPointer, sem.JSONKind)
	}
	return err.Error()
}

// UnmarshalJSONFrom takes a string or an object.
func (p *Protected) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		*p = Protected{}
		return json.UnmarshalDecode(dec, &p.Match)
	}
	type object Protected
	var o object
	if err := json.UnmarshalDecode(dec, &o); err != nil {
		return err
	}
	*p = Protected(o)
	return nil
}

// UnmarshalJSONFrom takes a string or an object.
func (v *Device) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		*v = Device{Write: true}
		return json.UnmarshalDecode(dec, &v.Path)
	}
	type object Device
	var o object
	if err := json.UnmarshalDecode(dec, &o); err != nil {
		return err
	}
	*v = Device(o)
	return nil
}

// UnmarshalJSONFrom takes "all" or a list.
func (r *Readable) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*r = Readable{}
	if dec.PeekKind() == '"' {
		var s string
		if err := json.UnmarshalDecode(dec, &s); err != nil {
			return err
		}
		if s != "all" {
			return errors.New(`readable is "all" or a list of paths`)
		}
		r.All = true
		return nil
	}
	return json.UnmarshalDecode(dec, &r.Paths)
}

// MarshalJSONTo is the inverse of UnmarshalJSONFrom.
func (r *Readable) MarshalJSONTo(enc *jsontext.Encoder) error {
	if r.All {
		return enc.WriteToken(jsontext.String("all"))
	}
	return json.MarshalEncode(enc, r.Paths)
}

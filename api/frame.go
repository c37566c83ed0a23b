package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is what one JSON-RPC object turned out to be.
type kind int

const (
	kindInvalid      kind = iota // answered with message.err
	kindCall                     // has an id, is answered
	kindNotification             // has none, is not
	kindResponse                 // a reply to a request that we never make
	kindVoid                     // a notification that means nothing: nobody waits for an answer
)

// message is one JSON-RPC object of a frame.
type message struct {
	kind   kind
	id     jsontext.Value // as the client spelled it; nil if there is none to echo
	method string
	params jsontext.Value // an object, or nil
	err    *Error         // of kindInvalid
}

// frame is a whole text message: one object, or a batch.
type frame struct {
	batch    bool
	messages []message
}

// nullID answers what has no usable id (JSON-RPC 2.0 section 5).
var nullID = jsontext.Value("null")

// parseFrame takes a frame apart. It copies nothing: ids and parameters are
// parts of text. An error concerns the frame as a whole and is answered once,
// with id null.
//
// Syntax is checked for the whole frame before anything of it is carried out:
// a batch with a broken tail does nothing.
func parseFrame(text []byte, lim Limits) (frame, *Error) {
	if tooDeep(text, lim.MaxDepth) {
		return frame{}, protocolError(numParse, CodeParseError, "parse frame: nested deeper than %d levels", lim.MaxDepth)
	}
	// Duplicate names are looked for by hand: at the top they make a request
	// invalid, and in the parameters the decoder of the parameters finds them.
	dec := borrowDecoder(text)
	defer returnDecoder(dec)
	p := parser{dec: &dec.Decoder, text: text}
	if dec.PeekKind() != '[' {
		m, err := p.message()
		if err == nil {
			err = p.end()
		}
		if err != nil {
			return frame{}, parseError(err)
		}
		return frame{messages: []message{m}}, nil
	}
	if _, err := dec.ReadToken(); err != nil {
		return frame{}, parseError(err)
	}
	f := frame{batch: true}
	n := 0
	for dec.PeekKind() != ']' {
		if n++; n > lim.MaxBatch {
			// Only the syntax still counts, and it must cost no more than that.
			if err := dec.SkipValue(); err != nil {
				return frame{}, parseError(err)
			}
			continue
		}
		m, err := p.message()
		if err != nil {
			return frame{}, parseError(err)
		}
		f.messages = append(f.messages, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return frame{}, parseError(err)
	}
	if err := p.end(); err != nil {
		return frame{}, parseError(err)
	}
	switch {
	case n == 0:
		return frame{}, protocolError(numInvalidRequest, CodeInvalidRequest, "parse frame: an empty batch")
	case n > lim.MaxBatch:
		return frame{}, protocolError(numInvalidRequest, CodeInvalidRequest, "parse frame: a batch of %d, at most %d are accepted", n, lim.MaxBatch)
	}
	return f, nil
}

type parser struct {
	dec  *jsontext.Decoder
	text []byte
}

// value reads one value and returns it as a part of text, which outlives the
// decoder's buffer.
func (p *parser) value() (jsontext.Value, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(p.dec.InputOffset())
	return jsontext.Value(p.text[end-len(v) : end : end]), nil
}

func (p *parser) end() error {
	if _, err := p.dec.ReadToken(); err != io.EOF {
		if err == nil {
			err = errors.New("text after the value")
		}
		return err
	}
	return nil
}

// message reads one value and says what it is. An error is one of syntax.
func (p *parser) message() (message, error) {
	if p.dec.PeekKind() != '{' {
		if _, err := p.value(); err != nil {
			return message{}, err
		}
		return invalid(nil, "a request is an object"), nil
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return message{}, err
	}
	var version, id, method, params, result, failure jsontext.Value
	var repeated, unknown string
	for p.dec.PeekKind() != '}' {
		name, err := p.dec.ReadToken()
		if err != nil {
			return message{}, err
		}
		// Names compare as they are, byte for byte: `Method` is not `method`.
		member := name.String()
		var to *jsontext.Value
		switch member {
		case "jsonrpc":
			to = &version
		case "id":
			to = &id
		case "method":
			to = &method
		case "params":
			to = &params
		case "result":
			to = &result
		case "error":
			to = &failure
		}
		v, err := p.value()
		if err != nil {
			return message{}, err
		}
		switch {
		case to == nil:
			unknown = member
		case *to != nil:
			repeated = member
		default:
			*to = v
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return message{}, err
	}
	// An id is echoed only when it is certain which one was meant.
	var echo jsontext.Value
	if repeated != "id" && validID(id) {
		echo = id
	}
	switch {
	case method == nil && (result != nil || failure != nil):
		return message{kind: kindResponse}, nil
	case repeated != "":
		return invalid(echo, "the member %q appears twice", clip(repeated)), nil
	case unknown != "" || result != nil || failure != nil:
		if unknown == "" {
			unknown = "result and error"
		}
		return invalid(echo, "the member %q has no place in a request", clip(unknown)), nil
	case id != nil && echo == nil:
		return invalid(nil, "an id is a string or a number"), nil
	case version.Kind() != '"' || unquote(version) != "2.0":
		return invalid(echo, `the member "jsonrpc" must be "2.0"`), nil
	case method.Kind() != '"':
		return invalid(echo, "there is no method"), nil
	case params.Kind() == '[' && echo != nil:
		return message{kind: kindInvalid, id: echo, err: paramsError("", "parameters go by name, in an object")}, nil
	case params.Kind() == '[':
		return message{kind: kindVoid}, nil
	case params != nil && params.Kind() != '{':
		return invalid(echo, "the parameters must be an object"), nil
	}
	m := message{kind: kindCall, id: echo, method: unquote(method), params: params}
	if echo == nil {
		m.kind = kindNotification
	}
	return m, nil
}

func invalid(id jsontext.Value, format string, args ...any) message {
	return message{kind: kindInvalid, id: id, err: protocolError(numInvalidRequest, CodeInvalidRequest, "parse request: "+format, args...)}
}

// validID: strings and numbers. `null` is refused, because the two sides of
// JSON-RPC disagree whether it makes a notification.
func validID(v jsontext.Value) bool {
	k := v.Kind()
	return k == '"' || k == '0'
}

// idKey is equal for ids that are the same: strings by content, numbers by
// spelling (1 and 1.0 are echoed as they came, so they may both be in flight).
func idKey(v jsontext.Value) string {
	if v.Kind() == '"' {
		return "s" + unquote(v)
	}
	return "n" + string(v)
}

func unquote(v jsontext.Value) string {
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return ""
	}
	return string(b)
}

func parseError(err error) *Error {
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		return protocolError(numParse, CodeParseError, "parse frame: %v at byte %d", s.Err, s.ByteOffset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return protocolError(numParse, CodeParseError, "parse frame: the text ends too early")
	}
	return protocolError(numParse, CodeParseError, "parse frame: %v", err)
}

// tooDeep tells whether brackets nest deeper than limit. It looks at brackets
// outside of strings only, so that it costs nothing and is right for every
// text that the parser accepts.
func tooDeep(text []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return false
}

// clip keeps what a client sent from filling a message or a log.
func clip(s string) string {
	const most = 128
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s… (%d bytes)", bytes.ToValidUTF8([]byte(s[:most]), nil), len(s))
}

package client

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/wattle-dev/wattle/api"
)

func encodeParams(params any) (jsontext.Value, error) {
	if params == nil {
		return jsontext.Value("{}"), nil
	}
	b, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode parameters: %w", err)
	}
	return b, nil
}

func frame(id int64, method string, params jsontext.Value) []byte {
	name, _ := jsontext.AppendQuote(nil, method)
	b := make([]byte, 0, len(params)+len(name)+64)
	b = strconv.AppendInt(append(b, `{"jsonrpc":"2.0","id":`...), id, 10)
	b = append(append(b, `,"method":`...), name...)
	b = append(append(b, `,"params":`...), params...)
	return append(b, '}')
}

// incoming is whatever the daemon sends: a reply, or an event.
type incoming struct {
	ID     jsontext.Value `json:"id"`
	Method string         `json:"method"`
	Result jsontext.Value `json:"result"`
	Error  *api.Error     `json:"error"`
	Params jsontext.Value `json:"params"`
}

// receive takes one frame. An error means that the daemon speaks nonsense and
// the connection is of no use.
func (c *Client) receive(text []byte) error {
	var m incoming
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if m.Method == api.EventMethod {
		var e api.Event
		if err := json.Unmarshal(m.Params, &e); err != nil {
			return fmt.Errorf("receive event: %w", err)
		}
		c.publish(e, len(text))
		return nil
	}
	if m.Method != "" {
		return nil // a newer daemon; notifications need no answer
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		if m.Error != nil { // id null: the daemon could not read what we sent
			return m.Error
		}
		return fmt.Errorf("receive: a reply to nothing")
	}
	c.mu.Lock()
	answer := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	if answer != nil { // else it was cancelled
		answer <- reply{m.Result, m.Error}
	}
	return nil
}

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/wattle-dev/wattle/fence"
)

// EditText implements [Provider].
func (l *Local) EditText(ctx context.Context, f *fence.Fence, t Target, e EditRequest, o EditOptions) (EditOutcome, error) {
	c, err := l.begin(ctx, f, "editText", t.DisplayPath)
	if err != nil {
		return EditOutcome{}, err
	}
	r := rewriting{call: c, o: o, change: func(text string, limit int64) (string, error) {
		return c.edited(text, e, limit)
	}}
	return r.run(t)
}

// edited is a text after an edit.
func (c *call) edited(text string, e EditRequest, limit int64) (string, error) {
	if i := invalidUTF8(e.NewString); i >= 0 {
		return "", c.fail(CodeNotText, fmt.Sprintf("the new text is not UTF-8 at offset %d", i))
	}
	result, err := splice(text, e.OldString, e.NewString, e.ReplaceAll, limit)
	var many ambiguous
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &many):
		return "", c.fail(CodeAmbiguousEdit, many.Error())
	case errors.Is(err, errResultSize):
		return "", c.tooLarge(c.editMax)
	}
	return "", c.fail(CodeEditNotFound, err.Error())
}

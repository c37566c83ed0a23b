package trash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/wattle-dev/wattle/trash/record"
)

// osascript is the trash of macOS: NSFileManager, reached by the scripting
// program that every macOS has. Finder is not asked: that needs the consent of
// a person.
type osascript struct {
	// program is /usr/bin/osascript.
	program string
	// limit ends the program; longer than a caller waits.
	limit time.Duration
	// mounts are the places where file systems are mounted.
	mounts func() ([]string, error)
}

func newOsascript(program string, mounts func() ([]string, error)) *osascript {
	return &osascript{program: program, limit: nativeLimit + 2*time.Second, mounts: mounts}
}

// trashScript is a constant: the path comes as an argument and is never part of
// it. isDirectory is false also for directories, so that no link is followed
// for the sake of a slash. The answer is one line of ASCII, whatever the locale.
const trashScript = `ObjC.import('Foundation');
function run(argv) {
  if (argv.length !== 1) { throw new Error('one path expected'); }
  const url = $.NSURL.fileURLWithPathIsDirectory(argv[0], false);
  const landing = Ref(), error = Ref();
  const done = $.NSFileManager.defaultManager.trashItemAtURLResultingItemURLError(url, landing, error);
  const answer = done ? {landing: ObjC.unwrap(landing[0].path)} : {
    domain: ObjC.unwrap(error[0].domain),
    code: Number(error[0].code),
    message: ObjC.unwrap(error[0].localizedDescription),
  };
  return JSON.stringify(answer).replace(/[\u007f-\uffff]/g,
    (c) => '\\u' + ('000' + c.charCodeAt(0).toString(16)).slice(-4));
}
`

// maxAnswer bounds what is read of the answer, in bytes: a path of 1024 bytes,
// each six bytes long, and as much again.
const maxAnswer = 16 << 10

func (o *osascript) trash(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	// The path is absolute, so it is no option.
	c := exec.CommandContext(ctx, o.program, "-l", "JavaScript", "-e", trashScript, path)
	c.Dir = "/"
	out, said := &head{most: maxAnswer}, &head{most: maxAnswer}
	c.Stdout, c.Stderr = out, said
	c.WaitDelay = time.Second
	err := c.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", &systemError{text: fmt.Sprintf("%s: %v: %s", o.program, err, oneLine(said.String()))}
	}
	return parseAnswer(out.Bytes())
}

// head keeps the beginning of what is written to it, and one byte more, by
// which a reader sees that it was too long.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(b []byte) (int, error) {
	if room := h.most + 1 - h.Len(); room > 0 {
		h.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// parseAnswer takes one line with one of the two objects that the script makes,
// and nothing else.
func parseAnswer(out []byte) (landing string, err error) {
	garbage := func(why string) (string, error) {
		return "", &systemError{text: why + ": " + oneLine(string(out[:min(len(out), 200)]))}
	}
	line, ok := bytes.CutSuffix(out, []byte("\n"))
	if !ok || len(out) > maxAnswer || bytes.IndexByte(line, '\n') >= 0 {
		return garbage("the answer is not one line")
	}
	var a struct {
		Landing *string `json:"landing"`
		Domain  *string `json:"domain"`
		Code    *int64  `json:"code"`
		Message *string `json:"message"`
	}
	if err := json.Unmarshal(line, &a, json.RejectUnknownMembers(true)); err != nil {
		return garbage("the answer is not understood")
	}
	switch {
	case a.Landing != nil && a.Domain == nil && a.Code == nil && a.Message == nil:
		if !strings.HasPrefix(*a.Landing, "/") || !plainPath(*a.Landing) {
			return garbage("the landing place is no path")
		}
		return *a.Landing, nil
	case a.Landing == nil && a.Domain != nil && a.Code != nil && a.Message != nil:
		return "", cocoaError(*a.Domain, *a.Code, *a.Message)
	}
	return garbage("the answer is not understood")
}

// cocoaError gives an NSError the meaning of its code (FoundationErrors.h,
// errno.h).
func cocoaError(domain string, code int64, message string) error {
	e := &systemError{text: fmt.Sprintf("%s (%s %d)", oneLine(message), oneLine(domain), code)}
	switch domain {
	case "NSCocoaErrorDomain":
		switch code {
		case 4, 260: // NSFileNoSuchFileError, NSFileReadNoSuchFileError
			e.is = fs.ErrNotExist
		case 257, 513, 642: // read and write NoPermission, VolumeReadOnly
			e.is = fs.ErrPermission
		case 3328: // NSFeatureUnsupportedError: the volume has no trash
			e.is = errors.ErrUnsupported
		}
	case "NSPOSIXErrorDomain":
		switch code {
		case 2: // ENOENT
			e.is = fs.ErrNotExist
		case 1, 13, 30: // EPERM, EACCES, EROFS
			e.is = fs.ErrPermission
		case 45: // ENOTSUP
			e.is = errors.ErrUnsupported
		}
	}
	return e
}

// refuse: what is mounted beneath a directory would go along. Everything else
// this system refuses itself instead of erasing it.
func (o *osascript) refuse(_ context.Context, t *subject) *record.Error {
	all, err := o.mounts()
	if err != nil {
		return failure(record.CodeRejected, record.ReasonInspection, opPut, t.path, "what is mounted cannot be read", err)
	}
	for _, at := range all {
		if covers(t.at, at) {
			return failure(record.CodeRejected, record.ReasonProtected, opPut, t.path, "something is mounted at "+at, nil)
		}
	}
	return nil
}

func (o *osascript) names() []string { return []string{".trash", ".trashes"} }

func (o *osascript) companion(string) string { return "" }

func (o *osascript) owners() bool { return true }

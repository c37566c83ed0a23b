package provider

import "github.com/wattle-dev/wattle/trash/record"

// Operation tells what a write did.
type Operation string

const (
	OperationCreate Operation = "create"
	OperationUpdate Operation = "update"
)

// WriteOutcome is the result of a write. Texts have LF line breaks and no
// byte-order mark; they are never a diff.
type WriteOutcome struct {
	Operation Operation `json:"operation"`
	Version   Version   `json:"version"`
	// Before is the previous text, or null: for a new file, for content that is
	// no text, and when either side reaches Config.DiffBasisMaxBytes.
	Before *string `json:"before"`
	After  string  `json:"after"`
	// LinksBroken is the number of other names that keep the old content
	// because the file had hard links.
	LinksBroken int `json:"linksBroken,omitzero"`
	// MetadataLost names what could not be carried over to the new file:
	// "owner", "group", "setid", "acl", or the name of an extended attribute.
	MetadataLost []string `json:"metadataLost,omitzero"`
	// Warning is for the model that asked for the write: it was done, and is
	// perhaps not what was meant. A local provider never warns.
	Warning string `json:"warning,omitzero"`
	// Trashed is the previous file, when the policy keeps what is overwritten.
	Trashed *record.Entry `json:"trashed,omitzero"`
}

// EditOutcome is the result of an edit; both texts are always there.
type EditOutcome struct {
	Version      Version  `json:"version"`
	Before       string   `json:"before"`
	After        string   `json:"after"`
	LinksBroken  int      `json:"linksBroken,omitzero"`
	MetadataLost []string `json:"metadataLost,omitzero"`
}

// TextContent is the result of readText: the text with its own line breaks,
// without the byte-order mark that BOM reports.
type TextContent struct {
	Text    string  `json:"text"`
	Version Version `json:"version"`
	BOM     bool    `json:"bom"`
}

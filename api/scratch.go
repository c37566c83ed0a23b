package api

// ScratchCreateParams make the directory, or one in it. Nothing but directories
// is made.
type ScratchCreateParams struct {
	SessionRef
	// Name is relative to the scratch directory.
	Name string `json:"name,omitzero"`
}

// ScratchWriteParams write one file. Exactly one of Content and Data is set.
type ScratchWriteParams struct {
	SessionRef
	Name    string  `json:"name"`
	Content *string `json:"content,omitzero"`
	Data    *[]byte `json:"data,omitzero"` // base64 on the wire
}

// Validate wants one content.
func (p *ScratchWriteParams) Validate() error {
	if (p.Content == nil) == (p.Data == nil) {
		return InvalidParams("/content", "exactly one of content and data is needed")
	}
	return nil
}

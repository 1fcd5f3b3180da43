package stomp

import "strings"

// Server reads the server header of a CONNECTED frame: name ["/" version] *(comment), where the name may have spaces
// and the version ends at the first of them ("CONNECTED Frame"). The version is empty if there is none.
func Server(header string) (name, version string) {
	name, version, _ = strings.Cut(header, "/")
	version, _, _ = strings.Cut(strings.ReplaceAll(version, "\t", " "), " ")
	return strings.TrimSpace(name), version
}

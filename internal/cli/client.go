package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/setting"
	"github.com/perfmq/perfmq/pkg/driver"
)

// byClient splits a list of factories into the usual drivers of the protocols and those on client libraries beside
// them. The first driver of a protocol is the usual one: the native driver, unless the protocol has only libraries.
func byClient(list []driver.Factory) (usual, libraries []driver.Factory) {
	for _, f := range list {
		if slices.ContainsFunc(usual, func(u driver.Factory) bool { return u.Name == f.Name }) {
			libraries = append(libraries, f)
		} else {
			usual = append(usual, f)
		}
	}
	return usual, libraries
}

// isNative tells whether a factory is that of our own data path.
func isNative(f *driver.Factory) bool { return f.Client == "" || f.Client == driver.Native }

// byChoice returns the factory of the client that the user chose for the protocol of f.
func (r *resolver) byChoice(f driver.Factory) driver.Factory {
	if r.Client == driver.Native || r.Client == f.Client || r.Client == setting.LibraryClient && !isNative(&f) {
		return f // native is the default, also where there is only a library
	}
	own := setting.LibrariesOf(&f, r.libraries)
	names := []string{cmp.Or(f.Client, driver.Native)}
	for _, l := range own {
		if r.Client == setting.LibraryClient || r.Client == l.Client {
			return l
		}
		names = append(names, l.Client)
	}
	switch {
	case len(own) > 0 || !isNative(&f):
		r.refuse("choose native or library", "--client %s: the clients of %s are %s", setting.Quoted(r.Client), f.Name,
			strings.Join(names, ", "))
	case r.Client != setting.LibraryClient && !slices.ContainsFunc(r.libraries,
		func(l driver.Factory) bool { return l.Client == r.Client }):
		r.refuse("choose native or library", "--client %s: there is no such client", setting.Quoted(r.Client))
	default:
		r.refuse("leave --client out"+r.othersWithLibraries(), "--client %s: %s has no client library", r.Client, f.Name)
	}
	return f
}

// othersWithLibraries names the protocols that have a client library.
func (r *resolver) othersWithLibraries() string {
	var names []string
	for _, l := range r.libraries {
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; client libraries are there for " + strings.Join(names, ", ")
}

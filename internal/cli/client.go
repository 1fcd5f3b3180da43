package cli

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// libraryClient is the value of --client for the client library of a protocol.
const libraryClient = "library"

// byClient splits a list of factories into the native drivers and those on client libraries.
func byClient(list []driver.Factory) (native, libraries []driver.Factory) {
	for _, f := range list {
		if f.Client == "" || f.Client == driver.Native {
			native = append(native, f)
		} else {
			libraries = append(libraries, f)
		}
	}
	return native, libraries
}

// librariesOf returns the client libraries of a protocol.
func librariesOf(f *driver.Factory, libraries []driver.Factory) []driver.Factory {
	var list []driver.Factory
	for _, l := range libraries {
		if l.Name == f.Name {
			list = append(list, l)
		}
	}
	return list
}

// clientFlags is the choice between our own data path and a client library.
func clientFlags() []definition {
	return []definition{{
		name: "client", group: groupBroker, arg: argName, def: driver.Native,
		help: "what speaks the protocol: native, which is perfmq itself, or library, a client library used as an application uses it. " +
			"If one is faster than the other, the client is the limit and not the broker",
		set: filled(func(s *settings) *string { return &s.client }), suggest: suggestClients,
	}}
}

func suggestClients(s *suggestions) []string {
	list := []string{driver.Native}
	for i, l := range librariesOf(s.own, s.libraries) {
		if i == 0 {
			list = append(list, libraryClient+"\t"+l.Client)
		}
	}
	return list
}

// byChoice returns the factory of the client that the user chose for the protocol of f.
func (r *resolver) byChoice(f driver.Factory) driver.Factory {
	if r.client == driver.Native {
		return f
	}
	own := librariesOf(&f, r.libraries)
	names := []string{driver.Native}
	for _, l := range own {
		if r.client == libraryClient || r.client == l.Client {
			return l
		}
		names = append(names, l.Client)
	}
	switch {
	case len(own) > 0:
		r.refuse("want native or library", "--client %s: the clients of %s are %s", quoted(r.client), f.Name, strings.Join(names, ", "))
	case r.client != libraryClient && !slices.ContainsFunc(r.libraries, func(l driver.Factory) bool { return l.Client == r.client }):
		r.refuse("want native or library", "--client %s: there is no such client", quoted(r.client))
	default:
		r.refuse("leave --client out"+r.othersWithLibraries(), "--client %s: %s has no client library", r.client, f.Name)
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

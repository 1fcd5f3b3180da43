package plan

import "github.com/perfmq/perfmq/pkg/driver"

type capabilities = driver.KindCapabilities

// setting is one that needs a capability.
type setting struct {
	used       bool
	can        func(*capabilities) bool
	flag, what string
}

// cannot refuses a setting that a protocol has no means for with one of the destinations.
func (v *validator) cannot(f *driver.Factory, s *setting) {
	all := v.allCan(s.can)
	v.refuse(s.used && !all(&f.Capabilities), leaveOut(s.flag, f, all), "%s: %s cannot %s", s.flag, title(f), s.what)
}

// allCan returns whether there is a capability for all kinds of the group's destinations.
func (v *validator) allCan(can func(*capabilities) bool) func(*driver.Capabilities) bool {
	return func(all *driver.Capabilities) bool {
		for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
			if c := all.Of(kind); v.group.hasKind(kind) && c.Exists && !can(c) {
				return false
			}
		}
		return true
	}
}

// leaveOut is the hint for a flag that cannot be had. The native driver may have what a client library lacks.
func leaveOut(flag string, f *driver.Factory, can func(*driver.Capabilities) bool) string {
	if f.Native != nil && can(f.Native) {
		return "leave " + flag + " out, or use --client native"
	}
	return "leave " + flag + " out"
}

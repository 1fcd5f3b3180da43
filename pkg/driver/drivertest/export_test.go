package drivertest

// Record is the collection of results, for tests of it.
type Record struct{ r *record }

func NewRecord(cfg *Config) Record { return Record{newRecord(cfg)} }

func (r Record) Add(name string, f Feature, refused, byBroker, ran, passed bool) {
	c := check{name: name, feature: f}
	if refused {
		c.refused = &refusal{feature: f, byBroker: byBroker, reason: "why"}
	}
	r.r.add(c, ran, passed)
}

func (r Record) Results() Results { return r.r.results }

func (r Record) Write(dir string) error { return r.r.write(dir) }

package result

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
)

// Limits for reading: a result may come from an untrusted source.
const (
	maxResult  = 64 << 20 // bytes of result.json
	maxLine    = 1 << 20  // bytes of a line of rows.jsonl, and of latencies.hdr
	maxRows    = 1 << 20  // twelve days
	maxBytes   = 4 << 30  // of rows.jsonl, and of latencies.hdr
	MaxFile    = maxBytes // of any file of a result
	maxMerged  = 1024     // results
	maxCounter = 1 << 53  // above that, programs that read numbers as floating point do not read them exactly
)

// check refuses a head that this package cannot read or that contradicts itself.
func (h *Head) check() error {
	switch {
	case h.Format != Format:
		return fmt.Errorf("the format is %q, not %q", h.Format, Format)
	case h.Version < 1 || h.Version > Version:
		return fmt.Errorf("version %d of the format; this program knows 1 to %d", h.Version, Version)
	}
	hash, err := Hash(h.Plan)
	if err != nil {
		return err
	}
	if hash != h.PlanHash {
		return errors.New("the hash is not that of the plan")
	}
	if h.Start > maxCounter {
		return errors.New("a time is too large")
	}
	return numbers(reflect.ValueOf(h))
}

// check refuses a row that no run can have.
func (r *Row) check() error {
	if err := numbers(reflect.ValueOf(r)); err != nil {
		return err
	}
	switch r.Phase {
	case Warmup, Measure, Drain:
	default:
		return fmt.Errorf("there is no phase %q", r.Phase)
	}
	if r.Length == 0 || r.Time == 0 {
		return errors.New("a row without time or length")
	}
	if max(r.Time, r.Elapsed, r.Length) > maxCounter {
		return errors.New("a time is too large")
	}
	if len(r.Groups) > MaxRowGroups+1 {
		return fmt.Errorf("a row with more than %d groups", MaxRowGroups+1)
	}
	for i := range r.Groups {
		if l := r.Groups[i].Latencies; l != nil {
			if err := l.check(); err != nil {
				return fmt.Errorf("group %d: %w", i+1, err)
			}
		}
	}
	if err := r.Latencies.check(); err != nil || r.Leftover == nil {
		return err
	}
	return r.Leftover.check()
}

// check refuses a result that no run can have.
func (r *Result) check() error {
	if err := errors.Join(r.Head.check(), numbers(reflect.ValueOf(r))); err != nil {
		return err
	}
	if err := r.Latencies.check(); err != nil {
		return err
	}
	for _, s := range r.Steps {
		if err := s.Latencies.check(); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
		for _, g := range s.Groups {
			if err := g.Latencies.check(); err != nil {
				return fmt.Errorf("step %q, group %q: %w", s.Name, g.Name, err)
			}
		}
	}
	return nil
}

// BrokerFindings is the prefix of the kinds of findings from the broker's own counters.
const BrokerFindings = "broker-"

// RowsMissing is the kind of the finding that rows could not be written.
const RowsMissing = "rows-missing"

// check refuses latencies with contradictory numbers. If there is a histogram, the percentiles are computed from it.
func (l *Latencies) check() error {
	for _, k := range kinds {
		if l[k.Kind] == nil {
			continue
		}
		if err := l[k.Kind].check(); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return nil
}

func (l *Latency) check() error {
	if l.Max > MaxLatency || l.Count == 0 && (l.Sum > 0 || l.Max > 0) {
		return errors.New("the maximum or sum does not fit the number of values")
	}
	if l.Histogram == nil {
		return nil
	}
	if l.Histogram.count != l.Count {
		return fmt.Errorf("the histogram has %d values, not %d", l.Histogram.count, l.Count)
	}
	if l.Count > 0 && l.Histogram.Percentile(100) != highest(place(l.Max)) {
		return errors.New("the maximum is not that of the histogram")
	}
	l.percentiles()
	return nil
}

// numbers refuses negative numbers, and counters above the maximum.
func numbers(v reflect.Value) (err error) { //nolint:gocyclo // a flat switch over kinds
	if v.Type() == reflect.TypeFor[Difference]() {
		if v.Int() > maxCounter || v.Int() < -maxCounter {
			return errors.New("a difference of times is too large")
		}
		return nil
	}
	switch v.Kind() { //nolint:exhaustive // other kinds hold no numbers
	case reflect.Pointer:
		if !v.IsNil() {
			return numbers(v.Elem())
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				err = cmp.Or(err, numbers(value))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			err = cmp.Or(err, numbers(v.Index(i)))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			err = cmp.Or(err, numbers(entries.Value()))
		}
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 {
			return errors.New("a number is negative")
		}
	case reflect.Float64:
		if v.Float() < 0 || v.Float() > maxCounter {
			return errors.New("a rate, or a measured value, is out of range")
		}
	case reflect.Uint64:
		if v.Uint() > maxCounter {
			return errors.New("a number is too large")
		}
	}
	return err
}

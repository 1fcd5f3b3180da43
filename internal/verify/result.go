package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Kind is a defect of a message.
type Kind string

// The kinds of examples that a [Scope] names.
const (
	Lost        Kind = "lost"
	Duplicated  Kind = "duplicated"
	Disordered  Kind = "out of order"
	Damaged     Kind = "damaged"
	Unconfirmed Kind = "unconfirmed but arrived"
	Refused     Kind = "refused but arrived"
	Withheld    Kind = "withheld but arrived"
)

// Message names a message.
type Message struct {
	Run      int64  `json:"run"`
	Producer int64  `json:"producer"`
	Number   uint64 `json:"number"`
}

// Scope is the verification of one subscription: of a queue, of a shared or durable subscription, or of one consumer
// of a topic.
type Scope struct {
	result.Subscription
	// Examples names the first few messages of each kind, by producer and number.
	Examples map[Kind][]Message `json:"examples,omitempty"`
}

// Result is the verification of a run.
type Result struct {
	result.Verification         // its Subscriptions are set by [Result.Verified]
	Scopes              []Scope `json:"subscriptions"`
	// LostBefore are, for each of [Sent].Marks, the messages of Total.Lost that were numbered before it, and not before an
	// earlier one.
	LostBefore []uint64 `json:"-"`

	runs      int
	forgotten uint64 // see [Window]
}

// Allow says which findings do not make a run a failure.
type Allow struct {
	Lost       bool `set:"allow-lost" needs:"verify" roles:"consumer" help:"lost messages do not fail the run"`
	Duplicates bool `set:"allow-duplicates" needs:"verify" roles:"consumer" help:"duplicates do not fail the run"`
	Damaged    bool `set:"allow-damaged" needs:"verify" roles:"consumer" help:"damaged messages do not fail the run"`
	Disorder   bool `set:"fail-on-disorder,not" needs:"verify" roles:"consumer" help:"messages out of order fail the run"`
}

// Findings returns the findings, with the subscription if only one has them. Parked messages wait by plan.
func (r *Result) Findings(allow Allow, parked uint64) (list []result.Finding) {
	t := &r.Total
	copies := t.Duplicates - min(t.AfterOutage+t.Resent, t.Duplicates)
	left := t.Left - min(parked, t.Left)
	illegible := ""
	if t.Illegible > 0 {
		illegible = fmt.Sprintf(", %d of them beyond recognition and counted as lost too", t.Illegible)
	}
	for _, f := range []struct {
		name    string
		kind    Kind
		n       uint64
		more    []any
		allowed bool
	}{
		{"lost", Lost, t.Lost, []any{t.Expected}, allow.Lost},
		{"arrived-late", "", t.ArrivedLate, nil, false},
		{"left", "", left, []any{t.Expected}, false},
		{"duplicated", Duplicated, copies, []any{min(copies, t.Redelivered)}, allow.Duplicates},
		{"damaged", Damaged, t.Damaged, []any{illegible}, allow.Damaged},
		{"out-of-order", Disordered, t.Disordered, []any{t.DisorderedRedelivered}, allow.Disorder},
		{"refused-arrived", Refused, t.RefusedArrived, nil, false},
		{"withheld-arrived", Withheld, t.WithheldArrived, nil, false},
		{"unconfirmed-arrived", Unconfirmed, t.UnconfirmedArrived, nil, false},
	} {
		if f.n == 0 {
			continue
		}
		found := words.Find(f.name, "", f.n, append([]any{f.n}, f.more...)...)
		if first := r.First(f.kind); first != "" {
			found.Text += "; first: " + first
		}
		var at []string
		for _, s := range r.Scopes {
			if len(r.Scopes) == 1 || len(s.Examples[f.kind]) > 0 {
				at = append(at, s.Title())
			}
			for _, m := range s.Examples[f.kind] {
				if len(found.Examples) < words.MaxExamples {
					found.Examples = append(found.Examples, fmt.Sprintf("producer-%d %d", m.Producer, m.Number))
				}
			}
		}
		if len(at) == 1 {
			found.Subject = at[0]
		}
		if f.allowed {
			found = words.As(found, result.Note)
		}
		list = append(list, found)
	}
	for _, d := range r.Unwatched {
		list = append(list, words.Find("unwatched", d, 1, d))
	}
	return list
}

// First names the first few messages of a kind: "producer-0 12, 57 on queue://A".
func (r *Result) First(kind Kind) string {
	var parts []string
	left := maxExamples
	for _, s := range r.Scopes {
		list := s.Examples[kind]
		list = list[:min(len(list), left)]
		left -= len(list)
		if len(list) == 0 {
			continue
		}
		text := r.names(list)
		if len(r.Scopes) > 1 {
			text += " on " + s.Title()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Names names messages of one run: "producer-0 12, 57".
func Names(list []Message) string { return new(Result).names(list) }

func (r *Result) names(list []Message) string {
	var b strings.Builder
	for i, m := range list {
		switch {
		case i > 0 && m.Run == list[i-1].Run && m.Producer == list[i-1].Producer:
			fmt.Fprintf(&b, ", %d", m.Number)
			continue
		case i > 0:
			b.WriteString(", ")
		}
		if r.runs > 1 {
			fmt.Fprintf(&b, "run %d ", m.Run)
		}
		fmt.Fprintf(&b, "producer-%d %d", m.Producer, m.Number)
	}
	return b.String()
}

// Title returns destination and subscription.
func (s *Scope) Title() string {
	if s.Name == "" {
		return s.Destination
	}
	return s.Destination + " (" + s.Name + ")"
}

// Verified returns the verification without examples, for a result.
func (r *Result) Verified() *result.Verification {
	v := r.Verification
	v.Subscriptions = []result.Subscription{}
	for _, s := range r.Scopes {
		v.Subscriptions = append(v.Subscriptions, s.Subscription)
	}
	return &v
}

// example notes a message, if there is room for it.
func (s *Scope) example(kind Kind, key Stream, n uint64) (more bool) {
	list := s.Examples[kind]
	if len(list) >= maxExamples {
		return false
	}
	m := Message{Run: key.Run, Producer: key.Producer, Number: n}
	if !slices.Contains(list, m) {
		s.Examples[kind] = append(list, m)
	}
	return len(s.Examples[kind]) < maxExamples
}

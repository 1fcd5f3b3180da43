package load

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/quantity"
)

// segmentKind is the kind of change of the rate within a segment. Its text is the first word of the segment in a
// schedule.
type segmentKind string

// The kinds of segments. A constant rate begins with no word.
const (
	segmentConstant segmentKind = "constant"
	segmentRamp     segmentKind = "ramp"
	segmentStair    segmentKind = "stair"
	segmentBurst    segmentKind = "burst"
	segmentPause    segmentKind = "pause"
)

const arrivalsEven, arrivalsPoisson = "even", "poisson"

// segment is a part of a [Schedule]. Zero rates are 0 messages per second.
type segment struct {
	Kind     segmentKind
	Length   time.Duration // 0 if it goes on until the load ends
	From, To Rate          // rate at the start and at the end; equal if constant, in the bursts if burst
	By       Rate          // stair: height of a step
	Every    time.Duration // stair: length of a step; burst: from one burst to the next
	Burst    time.Duration // burst: length of one
	Over     Rate          // burst: rate between the bursts
	Arrivals string        // empty for those of the whole schedule
}

// rateAbove is a rate that must not be 0, unlike a *Rate.
type rateAbove struct{ *Rate }

// parts returns the words of a segment of its kind, with pointers to its rates and times, the words that may follow
// them, and an example.
func (g *segment) parts() (all, more []any, example string) {
	switch g.Kind {
	case segmentPause:
		return []any{"pause", &g.Length}, nil, "pause 10s"
	case segmentRamp:
		return []any{"ramp", &g.From, "to", &g.To, "for", &g.Length}, nil, "ramp 1000 to 5000 for 60s"
	case segmentStair:
		return []any{"stair", &g.From, "to", &g.To, "by", rateAbove{&g.By}, "every", &g.Every}, nil,
			"stair 1000 to 5000 by 1000 every 30s"
	case segmentBurst:
		return []any{"burst", rateAbove{&g.From}, "for", &g.Burst, "every", &g.Every, "for", &g.Length},
			[]any{"over", &g.Over}, "burst 10000 for 1s every 10s for 5m over 500"
	default:
		return []any{rateAbove{&g.From}}, []any{"for", &g.Length}, "5000 for 30s"
	}
}

// String returns the segment in the form that [ParseSchedule] reads.
func (g *segment) String() string {
	var words []string
	if g.Arrivals != "" {
		words = append(words, g.Arrivals)
	}
	all, more, _ := g.parts()
	if g.Over > 0 || g.Kind == segmentConstant && g.Length > 0 {
		all = append(all, more...)
	}
	for _, part := range all {
		if d, ok := part.(*time.Duration); ok {
			part = timeText(*d)
		}
		words = append(words, fmt.Sprint(part))
	}
	return strings.Join(words, " ")
}

// timeText returns a time without units of zero: 5m, not 5m0s.
func timeText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// ParseSchedule reads segments separated by commas. Rates are numbers of messages per second of all producers together,
// as in [ParseRate], with at most nine decimals. Times are such as 30s or 1m30s, and plain numbers of seconds; they are
// above 0, and 292 years in all at most.
//
//	5000                                             a constant rate until the load ends: the last segment only
//	5000 for 30s                                     a constant rate
//	ramp 1000 to 5000 for 60s                        a linear change, up or down; one end may be 0
//	stair 1000 to 5000 by 1000 every 30s             steps up or down; the last one has the last rate; one end may be 0
//	burst 10000 for 1s every 10s for 5m [over 500]   bursts, the first one at once; the rate between them, 0 if none
//	pause 10s                                        nothing is due, and nothing is made up for afterwards
//
// The word poisson or even, before or after a segment, sets its arrivals.
func ParseSchedule(text string) (Schedule, error) {
	parts := strings.Split(text, ",")
	if plain, ok := plainRate(text); ok {
		return Schedule{}, fmt.Errorf("must be a number of messages per second without commas and units: write %s", plain)
	}
	return parseSegments(parts, false)
}

func parseSegments(parts []string, poisson bool) (Schedule, error) {
	b := builder{timetable: timetable{poisson: poisson}}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		g, err := parseSegment(part)
		if err == nil && g.Length == 0 && i < len(parts)-1 {
			err = fmt.Errorf("goes on until the load ends, so only the last segment can do without a time; add a time: %q",
				part+" for 30s")
		}
		if err == nil {
			err = b.add(g)
		}
		switch {
		case err == nil:
		case len(parts) == 1:
			return Schedule{}, err
		default:
			return Schedule{}, fmt.Errorf("segment %d of %d, %.80q: %w", i+1, len(parts), part, err)
		}
	}
	return b.schedule()
}

// plainRate returns the rate that 10,000 or 10k/s means.
func plainRate(text string) (plain string, ok bool) {
	groups := strings.Split(strings.TrimSuffix(text, "/s"), ",")
	for _, g := range groups[1:] {
		if len(g) != len("000") {
			return "", false
		}
	}
	plain = strings.Join(groups, "")
	_, err := ParseRate(plain)
	return plain, err == nil && plain != text
}

// parseSegment reads one segment.
func parseSegment(text string) (g segment, err error) {
	r := reader{words: strings.Fields(text)}
	g.Arrivals = r.arrivals()
	if len(r.words) == 0 {
		return g, errors.New("is empty; must be a rate such as 5000 for 30s, a ramp, stair, burst or pause")
	}
	switch g.Kind = segmentKind(r.words[0]); g.Kind {
	case segmentRamp, segmentStair, segmentBurst, segmentPause:
	default:
		g.Kind = segmentConstant
	}
	all, more, example := g.parts()
	r.read(all...)
	if g.Kind == segmentConstant && r.err != nil {
		r.err = fmt.Errorf("%w, or a word that begins a segment: ramp, stair, burst or pause", r.err)
	}
	if len(r.words) > 0 {
		r.read(more...)
	}
	if g.Kind == segmentConstant || g.Kind == segmentBurst {
		g.To = g.From
	}
	switch {
	case r.err != nil:
	case len(r.words) > 0:
		r.err = fmt.Errorf("expected a comma or the end after %.40q, not %.40q", r.last, r.words[0])
	default:
		r.err = g.check()
	}
	if r.err != nil {
		return segment{}, fmt.Errorf("%w; for example %q", r.err, example)
	}
	return g, nil
}

// check checks that the parts of a segment agree with each other, and sets the length of a stair.
func (g *segment) check() error {
	if (g.Kind == segmentRamp || g.Kind == segmentStair) && g.From.IsZero() && g.To.IsZero() {
		return errors.New("must have a rate above 0 at one end at least, or be a pause")
	}
	if g.Kind == segmentPause && g.Arrivals != "" {
		return fmt.Errorf("a pause has no arrivals: leave %s out", g.Arrivals)
	}
	if g.Kind == segmentBurst {
		if g.Burst >= g.Every {
			return errors.New("bursts must be shorter than the time from one to the next")
		}
		if g.Over >= g.From {
			return errors.New("the rate between the bursts must be lower than in them")
		}
	}
	if g.Kind == segmentStair {
		hi, lo := bits.Mul64(g.steps(), uint64(g.Every))
		if hi > 0 || lo > uint64(never) {
			return errTooLong
		}
		g.Length = time.Duration(lo)
	}
	return nil
}

var errTooLong = errors.New("the schedule is longer than 292 years")

// steps returns the number of steps of a stair.
func (g *segment) steps() uint64 {
	height := max(g.From, g.To) - min(g.From, g.To)
	return uint64((height+g.By-1)/g.By) + 1
}

// reader reads a segment word by word. After an error it reads nothing more.
type reader struct {
	words []string
	last  string // the word before
	err   error
}

// next returns the next word; want names the kind of word expected, for the error.
func (r *reader) next(want string) (word string, ok bool) {
	if r.err != nil {
		return "", false
	}
	if len(r.words) == 0 {
		r.err = fmt.Errorf("expected %s after %.40q", want, r.last)
		return "", false
	}
	r.last, r.words = r.words[0], r.words[1:]
	return r.last, true
}

// read reads the given words, and rates and times to the variables in between.
func (r *reader) read(parts ...any) {
	for _, part := range parts {
		switch to := part.(type) {
		case string:
			if word, ok := r.next(fmt.Sprintf("%q", to)); ok && word != to {
				r.err = fmt.Errorf("expected %q, not %.40q", to, word)
			}
		case rateAbove:
			r.rate(to.Rate, false)
		case *Rate:
			r.rate(to, true)
		case *time.Duration:
			r.time(to)
		}
	}
}

// arrivals removes the word for arrivals before or after a segment.
func (r *reader) arrivals() (word string) {
	for _, i := range []int{0, len(r.words) - 1} {
		if len(r.words) > 1 && (r.words[i] == arrivalsEven || r.words[i] == arrivalsPoisson) {
			word = r.words[i]
			r.words = slices.Delete(r.words, i, i+1)
			return word
		}
	}
	return ""
}

func (r *reader) rate(to *Rate, orZero bool) {
	word, ok := r.next("a rate")
	if !ok || orZero && strings.Trim(word, "0") == "" {
		return
	}
	if *to, r.err = ParseRate(word); r.err != nil {
		r.err = fmt.Errorf("%.40q: %w", word, r.err)
	}
}

func (r *reader) time(to *time.Duration) {
	word, ok := r.next("a time")
	if !ok {
		return
	}
	d, err := quantity.Duration(word, time.Second)
	if err == nil && d == 0 {
		err = errors.New("must be above 0")
	}
	if err != nil {
		r.err = fmt.Errorf("%.40q: %w", word, err)
		return
	}
	*to = d
}

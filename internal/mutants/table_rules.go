package main

// ruled makes a mutant of the rules of partitions that a case of their own tests must
// catch, by a rule of docs/design-partitions.md.
func ruled(name, rule, parent, test string, edits ...edit) mutant {
	for i := range edits {
		edits[i].File = "internal/rule/partition.go"
	}
	return mutant{name: name, breaks: "partitions " + rule, catch: test, pkg: "./internal/rule", parent: parent, edits: edits}
}

// planned does the same for the plan.
func planned(name, parent, test string, edits ...edit) mutant {
	for i := range edits {
		edits[i].File = "partition/plan.go"
	}
	return mutant{name: name, breaks: "partitions table", catch: test, pkg: "./partition", parent: parent, edits: edits}
}

// ruleMutants break the rules of partitions, and the plan, in ways that may take long to do
// harm.
var ruleMutants = []mutant{
	ruled("k_over not read", "2", "TestOver", "replaced", edit{
		Old: `case shown && r.Vacant(), slices.Contains(overIn(r), i.Nonce):`, New: `case shown && r.Vacant(), slices.Contains([]string{}, i.Nonce):`}),
	ruled("any other state counts as over", "2", "TestOver", "another_one_is_vacant", edit{
		Old: `	default:
		a, was`, New: `	case r.Exists():
		s.over[i] = true
	default:
		a, was`}),
	ruled("k_over not passed on", "2", "", "TestReplaced", edit{
		Old: `append(overIn(prev), prev.Attempt.Nonce)`, New: `[]string{prev.Attempt.Nonce}`}),
	ruled("k_over keeps the first ones", "2", "", "TestReplaced", edit{
		Old: `over[max(0, len(over)-maxOver):]`, New: `over[:min(len(over), maxOver)]`}),
	ruled("an absence that no later read confirms", "3", "TestOver", "missing,_and_read_again_too_early", edit{
		Old: `return max(end, now+1)`, New: `return end + now - now`}),
	ruled("an absence that began before a gap", "3", "", "TestGaps", edit{
		Old: `if !was || now-a.seen > s.gap {`, New: `if !was {`}),
	ruled("a missing record that was there in a gap", "4", "", "TestGaps", edit{
		Old: `now-t.seen > gap || fresh`, New: `fresh`}),
	ruled("an absence without the drift", "3", "TestOver", "missing", edit{
		Old: `a.since + Challenge(ttl, s.drift); a`, New: `a.since + ttl; a`}),
	ruled("an absence from before the read", "3", "TestOver", "missing", edit{
		Old: `			a.since = now`, New: `			a.since = sent`}),
	ruled("an absence confirmed by a read from before C", "3", "TestOver", "missing,_and_read_again_too_early", edit{
		Old: `a.sent, a.seen = sent, now`, New: `a.sent, a.seen = now, now`}),
	ruled("an absence that goes on after a sight", "3", "TestOver", "seen_meanwhile", edit{
		Old: `	case shown:
		delete(s.absent, i)`, New: `	case shown:`}),
	ruled("an absence that begins anew with each read", "3", "TestOver", "missing,_and_read_again_after_C", edit{
		Old: `if !was || now-a.seen > s.gap {`, New: `if !was || now-a.seen >= 0 {`}),
	ruled("put back is free", "4", "TestFree", "put_back_as_vacant", edit{
		Old: `r.Exists() && r.Token >= t.highest.Load() && fresh == "":`, New: `r.Exists() && fresh == "":`}),
	ruled("a record that vanished while founding is free", "4", "TestFree", "vanished_while_founding", edit{
		Old: `founding && t.highest.Load() == 0`, New: `founding`}),
	ruled("a missing record waits anew with each read", "4", "TestFree", "missing_still", edit{
		Old: `	case t.gone == 0 || now-t.seen > gap || fresh != t.fresh:`, New: `	default:`}),
	ruled("an unconfirmed record waited out with the missing one before it", "4", "TestFree", "unconfirmed,_where_it_was_missing", edit{
		Old: ` || fresh != t.fresh:`, New: `:`}),
	ruled("an unconfirmed record of a living incarnation free while founding", "4", "TestFree", "unconfirmed_while_founding", edit{
		Old: `return min(held, seats.Over(i, r.TTL, now)), nil`, New: `return 0, nil`}),
	ruled("a missing record waits only for Hold(A)", "4", "TestFree", "missing", edit{
		Old: `t.gone + Challenge(audit, seats.drift)`, New: `t.gone + Hold(audit, seats.drift)`}),
	ruled("a foreign vacancy taken", "4", "TestFree", "foreign_and_vacant", edit{
		Old: `	case err != nil:
		return Never, err
	case unconf`, New: `	case err != nil && !r.Vacant():
		return Never, err
	case unconf`}),
	ruled("a token after that of the record alone", "tokens", "", "TestTrailToken", edit{
		Old: `Token(max(t.highest.Load(), r.Token), min, wall)`, New: `Token(r.Token, min, wall)`}),

	planned("what is left goes to the first", "TestMoves", "one_at_a_time", edit{
		Old: `	for _, i := range t.order[:left] {
		t.quotas[i]++
	}`, New: `	t.quotas[t.order[0]] += left`}),
	planned("what is left goes to the first ones", "TestMoves", "weights_of_1_to_3", edit{
		Old: `return partitions*t.weights[j]%sum - partitions*t.weights[i]%sum`, New: `return 0`}),
	planned("partitions move that came first", "TestMoves", "several_weights_at_once", edit{
		Old: `			last := len(t.of[from]) - 1
			t.of[to] = append(t.of[to], t.of[from][last])
			t.of[from] = t.of[from][:last]`, New: `			t.of[to] = append(t.of[to], t.of[from][0])
			t.of[from] = t.of[from][1:]`}),
	planned("a position that became empty counts as empty from the start", "TestMoves", "one_at_a_time", edit{
		Old: `		t.weights = append(t.weights, at.weight)
`, New: `		if at.seat == noSeat {
			at.weight = 0
		}
		t.weights = append(t.weights, at.weight)
`}),
	planned("another table in the same form", "", "TestPlanForm", edit{
		Old: `	for from := range t.weights {`, New: `	for from := len(t.weights) - 1; from >= 0; from-- {`}),
	planned("no newcomer in the place of a leaver", "TestNext", "newcomers_replace_leavers_of_the_same_weight", edit{
		Old: `			if q.positions[i].weight == members[seat] {`, New: `			if false {`}),
	planned("no join undoes a leave", "TestMoves", "one_at_a_time", edit{
		Old: `last >= 0 && q.positions[last].weight == 0 &&`, New: `last < 0 &&`}),
	planned("a join undoes the leave of another weight", "TestNext", "another_weight_does_not_fit", edit{
		Old: ` && q.positions[q.positions[last].emptied].weight == members[seat] {`, New: ` {`}),
	planned("no leave undoes a join", "TestNext", "the_one_that_came_last_leaves", edit{
		Old: `		if i == len(q.positions)-1 {`, New: `		if i < 0 {`}),
	planned("another weight in the same seat not seen", "TestNext", "another_weight_in_the_same_seat", edit{
		Old: `	before := p.weights()
`, New: `	before := p.weights()
	for seat := range before {
		if members[seat] != 0 {
			before[seat] = members[seat]
		}
	}
`}, edit{Old: `members[at.seat] != at.weight {`, New: `members[at.seat] == 0 {`}),
	planned("a plan that begins anew is founding", "", "TestPlanSize", edit{
		Old: `		q.founding = p.founding
`, New: ``}),
	planned("a plan in another spelling", "", "TestParsePlan", edit{
		Old: `	if p.String() != text {`, New: `	if false {`}),
	planned("a seat planned twice", "", "TestParsePlan", edit{
		Old: ` || seats[at.seat]:`, New: `:`}),
	{name: "another partition of a key", breaks: "partitions keys", catch: "TestOf", pkg: "./partition", edits: []edit{{
		"partition/key.go", `binary.BigEndian`, `binary.LittleEndian`}}},
}

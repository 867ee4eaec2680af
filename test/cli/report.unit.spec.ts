import { describe, expect, it } from 'vitest';
import { detailsOf, type Entry, memberOf, reportFacts } from '../../src/cli/report/facts.rules.js';
import { html } from '../../src/cli/report/markup.js';
import { reportPage } from '../../src/cli/report/page.js';

const entry = (seq: number, payload: Record<string, unknown>): Entry => ({
  seq,
  at: `2026-03-02T09:00:0${seq}.000Z`,
  type: 'capstan.audit/1',
  link: 'ab'.repeat(32),
  payload,
});

const HOSTILE = `</title><script>alert("1")</script>'&\u202e\u0007`;

describe('markup', () => {
  it('S4-106 escapes every hole, in text and in attributes, and leaves what it made itself', () => {
    expect(html`<b title="${HOSTILE}">${HOSTILE}</b>`.text).toBe(
      `<b title="${'&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;\u{FFFD}\u{FFFD}'}">` +
        '&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;\u{FFFD}\u{FFFD}</b>',
    );
    expect(html`<ul>${['<a>', html`<li>${'<b>'}</li>`]}</ul>${null}${7}`.text).toBe(
      '<ul>&lt;a&gt;<li>&lt;b&gt;</li></ul>7',
    );
  });
});

describe('what entries tell', () => {
  const entries = [
    entry(1, {
      action: 'run.submitted',
      object: 'run_1',
      principal: 'tok_1',
      principalName: 'ann',
      name: 'n',
      kind: 'command',
      queue: 'q',
    }),
    entry(2, { action: 'run.cancel_requested', object: 'run_1', principal: 'tok_2' }),
    entry(3, {
      action: 'run.ended',
      object: 'run_1',
      principal: 'wrk_1',
      state: 'canceled',
      code: 'canceled',
      worker: 'wrk_1',
      startedAt: 's',
      endedAt: 'e',
    }),
    entry(4, { action: 'run.submitted', object: 'run_2', principal: 'tok_1', principalName: 'ann', rerunOf: 'run_1' }),
    entry(5, { action: 'run.ended', object: 'run_2', principal: 'tok_3', state: 'canceled', code: 'canceled' }),
    entry(6, { action: 'token.created', object: 'tok_9', principal: 'system', name: 'x', more: { a: 1 }, none: null }),
  ];
  const facts = reportFacts(entries);

  it('S4-106 one line for a run: who submitted it, who canceled it, and how it ended', () => {
    expect(facts.runs).toEqual([
      expect.objectContaining({
        id: 'run_1',
        name: 'n',
        submittedBy: 'ann (tok_1)',
        submittedAt: entries[0]?.at,
        canceledBy: 'tok_2',
        state: 'canceled',
        worker: 'wrk_1',
        startedAt: 's',
        endedAt: 'e',
        entries: [1, 2, 3],
      }),
      expect.objectContaining({
        id: 'run_2',
        rerunOf: 'run_1',
        canceledBy: 'tok_3',
        endedAt: entries[4]?.at,
        entries: [4, 5],
      }),
    ]);
  });

  it('S4-106 everything else by itself, with all that it says', () => {
    expect(facts.changes).toEqual([entries[5]]);
    expect(detailsOf(entries[5] as Entry)).toEqual(['name x', 'more {"a":1}', 'none ']);
    expect(facts.principals[0]).toEqual(['ann (tok_1)', 2]);
    expect(facts.actions).toEqual([
      ['run.ended', 2],
      ['run.submitted', 2],
      ['run.cancel_requested', 1],
      ['token.created', 1],
    ]);
    expect(facts.states).toEqual([['canceled', 2]]);
  });

  it('takes whatever a payload holds for text, also of another product', () => {
    const odd = entry(1, JSON.parse('{"__proto__": 1, "action": ["a"], "object": {"b": 2}, "toString": ""}'));
    expect(reportFacts([odd]).changes).toEqual([odd]);
    expect(memberOf(odd, 'action')).toBe('["a"]');
    expect(memberOf(odd, 'constructor')).toBeNull();
    expect(memberOf(odd, 'toString')).toBeNull();
  });
});

describe('the page', () => {
  const page = (isVerified: boolean) =>
    reportPage({
      title: HOSTILE,
      isVerified,
      verdict: HOSTILE,
      standing: [[HOSTILE, HOSTILE]],
      proven: [HOSTILE],
      notProven: [HOSTILE],
      note: HOSTILE,
      facts: reportFacts([
        entry(
          1,
          Object.fromEntries(
            ['action', 'object', 'principal', 'principalName', HOSTILE].map((name) => [name, HOSTILE]),
          ),
        ),
      ]),
      entries: [entry(1, { action: HOSTILE, object: HOSTILE, principal: HOSTILE })],
    });

  it('S4-106 lets nothing of an entry become markup, and asks for nothing from anywhere', () => {
    const text = page(true);
    expect(text).not.toContain('<script');
    for (const mark of ['\u0007', '\u202e']) expect(text).not.toContain(mark);
    expect(text).not.toMatch(/\b(src|href)=|url\(|@import|https?:/);
    expect(text).toContain("default-src 'none'");
    expect(text).toContain('ab'.repeat(32));
  });

  it('shows nothing of what did not verify', () => {
    expect(page(false)).not.toContain('ab'.repeat(32));
    expect(page(false)).toContain('class="verdict no"');
  });
});

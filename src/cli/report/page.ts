/**
 * The report as one HTML file that needs nothing else: no script, no network, no font; it prints with its table heads
 * on every page. Pure.
 */
import {
  actionOf,
  detailsOf,
  type Entry,
  memberOf,
  principalOf,
  type ReportFacts,
  type RunFacts,
} from './facts.rules.js';
import { html, Markup } from './markup.js';

export interface ReportPage {
  readonly title: string;
  /** Whether what follows was verified, and the sentence that says so. */
  readonly isVerified: boolean;
  readonly verdict: string;
  /** What the file is, by whom and of which range. */
  readonly standing: readonly (readonly [name: string, value: string])[];
  readonly proven: readonly string[];
  readonly notProven: readonly string[];
  /** What the page is, and how to check what it was made of. */
  readonly note: string;
  readonly facts: ReportFacts;
  readonly entries: readonly Entry[];
}

const STYLE = `
:root { color-scheme: light; }
body { font: 14px/1.45 system-ui, sans-serif; color: #1c2430; background: #fff; margin: 2rem auto; max-width: 84rem; padding: 0 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #d5dbe3; padding-bottom: .25rem; }
.verdict { border-left: 6px solid; padding: .7rem 1rem; font-weight: 600; }
.yes { border-color: #1a7f47; background: #e9f6ee; }
.no { border-color: #b42318; background: #fdeceb; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 1rem 0; }
dt { color: #5a6675; }
dd { margin: 0; overflow-wrap: anywhere; }
.time { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: 12.5px; }
th { text-align: left; color: #5a6675; font-weight: 600; border-bottom: 1px solid #9aa5b4; padding: .3rem .6rem .3rem 0; }
td { border-bottom: 1px solid #e6eaf0; padding: .3rem .9rem .3rem 0; vertical-align: top; overflow-wrap: break-word; }
.id, .link, .details { overflow-wrap: anywhere; min-width: 11rem; }
.counts { display: flex; flex-wrap: wrap; gap: 2.5rem; align-items: flex-start; }
.counts table { width: auto; min-width: 14rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.link, .id { font-family: ui-monospace, monospace; font-size: 11.5px; }
.good { color: #1a7f47; } .bad { color: #b42318; }
@page { size: landscape; margin: 12mm; }
@media print {
  body { margin: 0; max-width: none; font-size: 10.5pt; }
  table { font-size: 8pt; }
  .id, .link { font-size: 7.5pt; }
  .id, .link, .details { min-width: 7rem; }
  thead { display: table-header-group; }
  tr, .verdict { break-inside: avoid; }
  .verdict { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
`;

/** The whole document. */
export function reportPage(page: ReportPage): string {
  const { title, isVerified, verdict, standing, note } = page;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<h1>${title}</h1>
<p class="verdict ${isVerified ? 'yes' : 'no'}">${verdict}</p>
<dl>${standing.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
<p>${note}</p>
${sentences('What this proves', page.proven)}${sentences('What this does not prove', page.notProven)}
${isVerified ? contents(page) : null}
</body>
</html>
`.text;
}

function sentences(title: string, items: readonly string[]): Markup {
  if (items.length === 0) return html``;
  return html`<h2>${title}</h2>\n<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>\n`;
}

function contents({ facts, entries }: ReportPage): Markup {
  return html`<h2>Summary</h2>
<div class="counts">${[
    counts('Action', facts.actions),
    counts('Principal', facts.principals),
    counts('Runs ended', facts.states),
  ]}</div>
<h2>Runs (${facts.runs.length})</h2>
${facts.runs.length === 0 ? html`<p>None.</p>` : runTable(facts.runs)}
<h2>Other changes (${facts.changes.length})</h2>
${facts.changes.length === 0 ? html`<p>None.</p>` : changeTable(facts.changes)}
<h2>Every entry (${entries.length})</h2>
${entryTable(entries)}`;
}

function counts(title: string, rows: readonly (readonly [string, number])[]): Markup {
  if (rows.length === 0) return html``;
  return table(
    [title, 'Entries'],
    rows.map(([name, count]) => html`<tr><td>${name}</td><td class="number">${count}</td></tr>`),
  );
}

function runTable(runs: readonly RunFacts[]): Markup {
  return table(
    ['Run', 'Kind', 'Submitted', 'Ran', 'Outcome', 'Canceled by', 'Entries'],
    runs.map(
      (
        run,
      ) => html`<tr><td>${run.name === null ? null : html`${run.name}<br>`}<span class="id">${run.id}</span>${rerun(run)}</td>
<td>${run.kind}${run.queue === null ? null : html`<br>${run.queue}`}</td>
<td>${time(run.submittedAt)}${run.submittedBy === null ? null : html`<br>${run.submittedBy}`}</td>
<td>${time(run.startedAt)}<br>${time(run.endedAt)}${run.worker === null ? null : html`<br><span class="id">${run.worker}</span>`}</td>
<td>${outcome(run)}</td><td>${run.canceledBy}</td><td class="number">${run.entries.join(', ')}</td></tr>`,
    ),
  );
}

function rerun({ rerunOf }: RunFacts): Markup | null {
  return rerunOf === null ? null : html`<br>rerun of <span class="id">${rerunOf}</span>`;
}

function time(at: string | null): Markup {
  return html`<span class="time">${at}</span>`;
}

function outcome({ state, code, exitCode }: RunFacts): Markup {
  if (state === null) return html`not in this range`;
  const words = [code === state ? null : code, exitCode === null ? null : `exit code ${exitCode}`];
  const shown = words.filter((word) => word !== null).join(', ');
  return html`<span class="${state === 'succeeded' ? 'good' : 'bad'}">${state}</span><br>${shown}`;
}

function changeTable(changes: readonly Entry[]): Markup {
  return table(
    ['Seq', 'At', 'Action', 'Object', 'Principal', 'Details'],
    changes.map(
      (entry) => html`<tr><td class="number">${entry.seq}</td><td>${time(entry.at)}</td><td>${actionOf(entry)}</td>
<td class="id">${memberOf(entry, 'object')}</td><td>${principalOf(entry)}</td>
<td class="details">${detailsOf(entry).map((detail) => html`${detail}<br>`)}</td></tr>`,
    ),
  );
}

function entryTable(entries: readonly Entry[]): Markup {
  return table(
    ['Seq', 'At', 'Action', 'Object', 'Principal', 'Link'],
    entries.map(
      (entry) => html`<tr><td class="number">${entry.seq}</td><td>${time(entry.at)}</td><td>${actionOf(entry)}</td>
<td class="id">${memberOf(entry, 'object')}</td><td>${principalOf(entry)}</td><td class="link">${entry.link}</td></tr>`,
    ),
  );
}

function table(titles: readonly string[], rows: readonly Markup[]): Markup {
  return html`<table><thead><tr>${titles.map((title) => html`<th>${title}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table>`;
}

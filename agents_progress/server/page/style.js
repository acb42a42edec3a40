/**
 * How a run looks.
 *
 * One constructed style sheet, shared by all elements of a document: it is there before the first one is drawn, so that
 * nothing ever flashes unstyled, as it would while a `<link>` in a shadow root loads; and no policy counts it as inline
 * style, as it would a `<style>`. That is why these rules stand in a module and not in a file of their own.
 *
 * Colours are those of the scheme that the page around uses, by `light-dark()`, and stand on a ground of their own, so
 * that they can be read on any page. Green is for `done` alone. Whatever a colour says, a shape and words say as well.
 */

const RULES = `
:host { display: block; }
:host([hidden]), [hidden] { display: none !important; }
*, ::before, ::after { box-sizing: border-box; }

[part=run] {
  --text: var(--agent-progress-text, light-dark(#1b1f24, #e7eaee));
  --quiet: var(--agent-progress-quiet, light-dark(#56606b, #a3adb8));
  --line: var(--agent-progress-line, light-dark(#d5dae0, #39414a));
  --edge: var(--agent-progress-edge, light-dark(#767f89, #838d98));
  --ground: var(--agent-progress-ground, light-dark(#ffffff, #15191e));
  --raised: var(--agent-progress-raised, light-dark(#f4f6f8, #1e242b));
  --accent: var(--agent-progress-accent, light-dark(#1656b8, #86b4ff));
  --needs: var(--agent-progress-needs, light-dark(#7b3fb0, #cfa6f7));
  --done: var(--agent-progress-done, light-dark(#11703a, #6fd197));
  --warn: var(--agent-progress-warn, light-dark(#8a5200, #f0b95c));
  --fail: var(--agent-progress-fail, light-dark(#b3261e, #ff9c94));
  --tone: var(--accent);
  position: relative;
  padding: 0 1rem 1rem;
  border: 1px solid var(--line);
  border-radius: var(--agent-progress-radius, 10px);
  background: var(--ground);
  color: var(--text);
  font: var(--agent-progress-font, 1rem/1.5 system-ui, sans-serif);
  overflow-wrap: anywhere;
  overflow-x: clip;
}
[data-status=waiting] { --tone: var(--needs); }
[data-status=done] { --tone: var(--done); }
:is([data-status=cancelled], [data-status=cancelling], [data-status=incomplete], [data-status=unknown])[part=run] {
  --tone: var(--warn);
}
:is([data-status=failed], [data-status=rejected])[part=run] { --tone: var(--fail); }
:is([data-status=accepted], [data-status=checking])[part=run] { --tone: var(--quiet); }

h2, h3, p, ul, pre { margin: 0; padding: 0; font: inherit; }
ul { list-style: none; }
[dir=auto] { unicode-bidi: isolate; }
/* Marks can be piled as high and as wide as a text likes; they stay within their own block and cover no other. */
:is([part=title], [part=asked], [part=tool], [part=where], [part=until], [part=words], li) {
  overflow: clip; overflow-clip-margin: 4px;
}
svg {
  display: block; inline-size: 1em; block-size: 1em;
  fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round; stroke-linejoin: round;
}
button, input, textarea { font: inherit; color: inherit; }
textarea { resize: vertical; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
button, input, a, article { scroll-margin-block: 8rem 4rem; }

[part=head] {
  position: sticky; inset-block-start: var(--agent-progress-top, 0px); z-index: 2;
  margin-inline: -1rem; padding: .875rem 1rem .75rem;
  border-block-end: 1px solid var(--line);
  border-start-start-radius: inherit; border-start-end-radius: inherit;
  background: var(--ground);
}
[part=title] {
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3;
  color: var(--quiet); font-size: .875em;
}
[part=status-row] {
  display: flex; align-items: center; gap: .75rem; min-block-size: 2.25rem; margin-block-start: .125rem;
}
[part=status] {
  display: flex; flex: 1; min-inline-size: 0; gap: .5rem; font-size: 1.125em; font-weight: 600; line-height: 1.35;
}
[part=status] [part=icon] { flex: none; padding-block: .125em; font-size: 1.1em; color: var(--tone); }
[data-status=running] [part=status] svg { animation: turn 2s linear infinite; }
@keyframes turn { to { rotate: 1turn; } }
:is([part=stop-said], [part=answered]):empty { display: none; }
[part=stop-said] { color: var(--quiet); font-size: .875em; }
[part=link], [part=refused] {
  margin-block-start: .5rem; padding: .25rem .625rem;
  border-inline-start: 4px solid var(--warn); background: var(--raised); font-size: .875em;
}
[part=refused] { border-color: var(--fail); }

button {
  min-block-size: 2.25rem; padding: .25rem .875rem;
  border: 1px solid var(--edge); border-radius: 8px;
  background: var(--ground); cursor: pointer; touch-action: manipulation;
}
button:hover { background: var(--raised); }
button[aria-disabled=true] { border-style: dashed; color: var(--quiet); cursor: default; }
[part=stop] { flex: none; }

[part=details], [part=decided] { margin-block-start: .75rem; font-size: .9375em; }
[part=details] { padding-inline-start: .75rem; border-inline-start: 4px solid var(--tone); }
[part=decided] { color: var(--quiet); }

[part=question] {
  margin-block-start: .875rem; padding: .875rem;
  border: 2px solid var(--needs); border-radius: 10px; background: var(--raised);
}
[part=asked] { font-weight: 600; }
[part=exactly], [part=where], [part=until] { color: var(--quiet); font-size: .875em; }
[part=exactly] { margin-block-start: .25rem; }
[part=what] {
  margin-block: .375rem .5rem; border: 1px solid var(--line); border-radius: 6px; background: var(--ground);
}
[part=tool], [part=details-text] { font: .875em/1.5 ui-monospace, monospace; }
[part=tool] { display: block; padding: .375rem .625rem; font-weight: 600; }
[part=details-text] {
  max-block-size: 16rem; overflow: auto; padding: .375rem .625rem; border-block-start: 1px solid var(--line);
  white-space: pre-wrap; tab-size: 4; unicode-bidi: plaintext;
}
[part=until] { display: block; }
[part=reason-row], [part=text-row], [part=arguments-row] { display: block; margin-block-start: .625rem; }
[part=reason-name], [part=text-name], [part=arguments-name] { display: block; font-size: .875em; }
[part=options] { margin: .625rem 0 0; padding: 0; border: 0; }
[part=choose] { padding: 0; font-size: .875em; }
[part=option-row] { display: flex; gap: .5rem; align-items: center; min-block-size: 2.25rem; overflow-wrap: anywhere; }
[part=option] { flex: none; inline-size: 1.125rem; block-size: 1.125rem; margin: 0; accent-color: var(--needs); }
[part=edit] { margin-block-start: .625rem; }
[part=edit-name] { min-block-size: 1.75rem; font-size: .875em; cursor: pointer; }
[part=arguments] { font: .875em/1.5 ui-monospace, monospace; unicode-bidi: plaintext; }
[part=reason], [part=text], [part=arguments] {
  display: block; inline-size: 100%; min-block-size: 2.25rem; padding: .25rem .625rem;
  border: 1px solid var(--edge); border-radius: 8px; background: var(--ground);
}
[part=answers] { display: flex; flex-wrap: wrap; gap: .75rem; margin-block-start: .75rem; }
[part=answers] button {
  flex: 1 1 6rem; max-inline-size: 12rem; min-block-size: 2.75rem; padding-inline: .5rem; font-weight: 600;
}
[part=approve] { border-color: var(--needs); color: var(--needs); }
[part=answered] { margin-block-start: .625rem; font-weight: 600; }

[part=work], [part=folded] { margin-block-start: .75rem; }
[part=activity] {
  display: grid; grid-template-columns: 1.25rem minmax(0, 1fr) auto; column-gap: .5rem; align-items: start;
  padding-block: .1875rem; color: var(--quiet);
}
[part=activity][data-depth="1"] { margin-inline-start: 1.25rem; }
[part=activity][data-depth="2"] { margin-inline-start: 2.5rem; }
[part=activity][data-depth="3"] { margin-inline-start: 3.75rem; }
[part=activity] [part=icon] { padding-block-start: .25em; }
:is([data-state=running], [data-state=requested]) [part=name] { font-weight: 600; }
[data-live] :is([data-state=running], [data-state=requested]) [part=name] { color: var(--text); }
[data-live] :is([data-state=running], [data-state=requested]) [part=icon] { color: var(--accent); }
:is([data-state=failed], [data-state=rejected])[part=activity] { color: var(--text); }
:is([data-state=failed], [data-state=rejected]) [part=icon] { color: var(--fail); }
[part=elapsed] { font-variant-numeric: tabular-nums; white-space: nowrap; }
[part=progress] { grid-column: 2 / -1; inline-size: 100%; block-size: .5rem; accent-color: var(--accent); }
[part=fold] {
  display: flex; align-items: center; gap: .5rem; margin-block-start: .5rem; padding-inline: .625rem;
  min-block-size: 2rem; color: var(--quiet); font-size: .875em;
}
[part=fold]::before {
  content: ""; inline-size: .5em; block-size: .5em; margin-block-start: -.125em;
  border: solid currentColor; border-width: 0 2px 2px 0; rotate: -45deg;
}
[part=fold][aria-expanded=true]::before { margin-block-start: -.25em; rotate: 45deg; }

[part=answer] {
  margin-block-start: .875rem; padding-block-start: .75rem; border-block-start: 1px solid var(--line); contain: content;
}
[part=answer-name] { color: var(--quiet); font-size: .875em; font-weight: 600; }
[part=missing] { color: var(--quiet); font-style: italic; }
[part=answer-text] > div { white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; unicode-bidi: plaintext; }
[part=files], [part=sources], [part=usage] { margin-block-start: .75rem; font-size: .9375em; }
a { color: var(--accent); }

[part=more] {
  position: sticky; inset-block-end: .75rem; z-index: 1; display: block; margin: .75rem auto 0;
  border-color: var(--accent); color: var(--accent); font-weight: 600; box-shadow: 0 2px 8px rgb(0 0 0 / .25);
}
[part=end] { block-size: 1px; margin-block-start: -1px; scroll-margin-block-end: 5rem; }
[part=news] {
  position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}

/* On a low screen, or one that is much enlarged, the head would take the room of what is read. */
@media (max-height: 30rem) { [part=head] { position: static; } }
@media (prefers-reduced-motion: reduce) { [part=status] svg { animation: none !important; } }
@media (forced-colors: active) {
  [part=question] { border-color: Highlight; }
  button[aria-disabled=true] { color: GrayText; border-color: GrayText; }
}
@media print {
  [part=run] { border: 0; padding: 0; }
  [part=head] { position: static; margin: 0; padding-inline: 0; }
  [part=details-text] { max-block-size: none; }
  [part=stop], [part=fold], [part=more], [part=link], [part=carried],
  [part=reason-row], [part=answers] { display: none; }
}
`;

/** @type {CSSStyleSheet | undefined} */
let sheet;

/** The style sheet, made when the first element needs it. */
export function style() {
  if (sheet === undefined) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(RULES);
  }
  return sheet;
}

// The page's frame: views by their addresses, who asks, and the time that is looked at.

import { at, effect, html, link, render, route, useEffect, useRef, useState } from './base.js';
import { discover, isRefused, kinds, token, turn, user, whoAmI } from './api.js';
import { ChangesView } from './changes.js';
import { ObjectView } from './object.js';
import { ObjectsView } from './objects.js';
import { ServerView } from './server.js';
import { SqlView } from './sql.js';
import { TimeBar } from './timebar.js';
import { Notice, Voice } from './parts.js';

const views = [
  ['', 'Changes', ChangesView],
  ['objects', 'Objects', ObjectsView],
  ['sql', 'SQL', SqlView],
  ['server', 'Server', ServerView],
];

function Page() {
  const [name = '', ...rest] = route.value.path;
  const main = useRef();
  const place = route.value.path.join('/');
  const [first] = useState(place);
  const current = name === 'object' ? 'objects' : name;
  const View = name === 'object' ? ObjectView : views.find(([id]) => id === name)?.[2];
  const title = name === 'object' ? rest[2] : views.find(([id]) => id === name)?.[1] || 'Not found';
  useEffect(() => { document.title = `${title}${at.value ? ` at ${at.value}` : ''} – rowplane`; }, [title, at.value]);
  // A new view is read from its beginning, by whoever listens, too.
  useEffect(() => { if (place !== first) main.current?.focus({ preventScroll: true }); }, [place]);
  return html`<a class="skip" href="#main" onClick=${event => { event.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="top"><a class="brand" href=${link([])}><img src="icon.svg" alt="" width="20" height="20" />rowplane</a>
      <nav aria-label="Views">${views.map(([id, label]) => html`<a href=${link(id ? [id] : [])} aria-current=${id === current ? 'page' : undefined}>${label}</a>`)}</nav>
      <span class="who">${user.value ? html`<span title=${(user.value.groups || []).join(', ')}>${user.value.username}</span>` : ''}
        <button onClick=${() => { turn.value += 1; }} aria-label="Ask for everything again" title="Ask for everything again">↻</button></span></header>
    <${TimeBar} />
    <main id="main" tabindex="-1" ref=${main}>${isRefused.value && html`<${SignIn} />`}
      ${View ? html`<${View} />` : html`<${Notice} title="Not found">There is no such view. <a href=${link([])}>What just happened</a><//>`}</main>
    <${Voice} />`;
}

/// A bearer token for whoever the server does not know. It stays in this page's memory.
function SignIn() {
  const [typed, set] = useState('');
  const submit = event => {
    event.preventDefault();
    isRefused.value = false;
    token.value = typed.trim();
    turn.value += 1;
  };
  return html`<section class="notice warn" aria-label="Sign in"><strong>The server wants to know who asks.</strong>
    <p><code>rowplane console</code> opens this page with the credentials of your kubeconfig. Or paste a bearer token, such as one of <code>kubectl create token NAME</code>; it is kept in this page's memory only.</p>
    <form onSubmit=${submit} class="filters"><label class="field wide"><span>Token</span><input type="password" autocomplete="off" value=${typed} onInput=${event => set(event.currentTarget.value)} /></label>
      <button class="primary">Use it</button></form></section>`;
}

// Kinds are those of the time that is looked at.
effect(() => {
  const controller = new AbortController();
  void [at.value, token.value, turn.value];
  discover(controller.signal).catch(() => { if (!controller.signal.aborted && !at.value) kinds.value = new Map(); });
  return () => controller.abort();
});
effect(() => {
  void [token.value, turn.value];
  whoAmI().catch(() => { user.value = null; });
});

render(html`<${Page} />`, document.body);

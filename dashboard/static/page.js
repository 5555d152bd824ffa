// One history entry a page. Streamlit adds one for each change of the query, so that leaving a page took a step for each choice.
// Here a change of the query replaces the entry, and Back shows the page before with its own last choices.
{
    const push = history.pushState.bind(history);
    const replace = history.replaceState.bind(history);
    // Streamlit may write the query of the next page before it changes the path. Then the entry of this page must not change.
    let next = location.pathname;

    addEventListener(
        "click",
        (event) => {
            const link = event.target.closest?.("a[href]");
            const here = link && link.origin === location.origin && (!link.target || link.target === "_self");
            if (here && !event.ctrlKey && !event.metaKey && !event.shiftKey) next = link.pathname;
        },
        true,
    );
    addEventListener("popstate", () => (next = location.pathname));

    history.pushState = (state, unused, url) => {
        const to = new URL(url ?? "", location.href);
        if (to.pathname === location.pathname) to.pathname = next;
        (to.pathname === location.pathname ? replace : push)(state, unused, to);
        next = location.pathname;
    };
}

// `plotly()` is a promise of Plotly. A page with charts loads it at once, and another one while the browser is idle.
{
    const { plotly, atOnce } = document.currentScript.dataset;
    let loaded;
    window.plotly = () =>
        (loaded ??= new Promise((resolve, reject) => {
            const script = Object.assign(document.createElement("script"), { src: plotly, onerror: reject });
            script.onload = () => resolve(window.Plotly);
            document.head.append(script);
        }));
    const ready = '[data-testid="stApp"][data-test-script-state="notRunning"] [data-testid="stMain"] [data-testid="stElementContainer"]';
    const load = () => {
        if (!document.querySelector(ready)) setTimeout(load, 300);
        else (window.requestIdleCallback ?? setTimeout)(() => window.plotly().catch(() => {}));
    };
    if (atOnce === undefined) load();
    else window.plotly().catch(() => {});
}

// Streamlit draws its own parts in a new theme at once. Charts, tables and the timeline have their colours from Python: the key of a
// rerun asks for them.
{
    const watch = () => {
        const app = document.querySelector('[data-testid="stApp"]');
        if (!app) return setTimeout(watch, 300);
        const scheme = () => getComputedStyle(app).colorScheme;
        let shown = scheme();
        const rerun = () => {
            if (app.dataset.testScriptState !== "notRunning") return setTimeout(rerun, 100); // Streamlit ignores the key meanwhile
            const key = { key: "r", code: "KeyR", bubbles: true };
            for (const type of ["keydown", "keyup"]) document.dispatchEvent(new KeyboardEvent(type, key));
        };
        new MutationObserver(() => {
            if (shown === scheme()) return;
            shown = scheme();
            rerun();
        }).observe(app, { attributeFilter: ["class"] });
    };
    watch();
}

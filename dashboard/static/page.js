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

// Plotly is loaded while the browser is idle after the first page, so that a page with charts need not wait for it.
{
    const plotly = document.currentScript.dataset.plotly;
    const ready = '[data-testid="stApp"][data-test-script-state="notRunning"] [data-testid="stMain"] [data-testid="stElementContainer"]';
    const load = () => {
        if (!document.querySelector(ready)) setTimeout(load, 300);
        else (window.requestIdleCallback ?? setTimeout)(() => import(new URL(plotly, location.href)).catch(() => {}));
    };
    if (plotly) load();
}

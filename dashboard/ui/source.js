// A source in colours. Each token is written as text, so that nothing in a source is markup.
export default function ({ data, parentElement }) {
  const [pre, copy] = [parentElement.querySelector('pre'), parentElement.querySelector('button')];
  pre.style.height = data.height ? `${data.height}px` : '';
  pre.replaceChildren(...data.tokens.map(([kind, text]) => {
    if (!kind) return text;
    const span = document.createElement('span');
    span.className = kind;
    span.textContent = text;
    return span;
  }));
  copy.onclick = async () => {
    await navigator.clipboard.writeText(pre.textContent);
    copy.textContent = 'Copied';
    setTimeout(() => (copy.textContent = 'Copy'), 1500);
  };
}

// In a folder, where browsers refuse workers, that of the search runs in a frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow, script = inside.document.createElement("script");
      inside.postMessage = data => this.onmessage?.({ data });
      this.loaded = new Promise(resolve => { script.onload = resolve; });
      script.onerror = event => this.onerror?.(event);
      script.src = new URL(url, location);
      inside.document.body.append(script);
    }
    postMessage(data) { this.loaded.then(() => this.frame.contentWindow?.onmessage({ data })); }
    terminate() { this.frame.remove(); }
  };
}

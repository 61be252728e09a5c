/* The search of the site runs in a worker, and browsers refuse workers to pages that are opened from the disk.
   There, an invisible frame takes the worker's place. The theme would fetch such a script from elsewhere. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html><title>Search</title>";
      this.ready = new Promise((resolve, reject) => {
        this.frame.addEventListener("load", () => {
          const { contentWindow, contentDocument } = this.frame;
          contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = contentDocument.createElement("script");
          script.src = address;
          script.onload = resolve;
          script.onerror = reject;
          contentDocument.body.append(script);
        }, { once: true });
      });
      document.body.append(this.frame);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}

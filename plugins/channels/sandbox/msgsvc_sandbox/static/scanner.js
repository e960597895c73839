// Reads QR codes where the browser can: from a picture or the camera.

const INTERVAL_MS = 200;

/** A detector, or null where the browser has none. */
async function makeDetector() {
  if (!("BarcodeDetector" in window)) return null;
  const formats = await window.BarcodeDetector.getSupportedFormats();
  return formats.includes("qr_code") ? new window.BarcodeDetector({ formats: ["qr_code"] }) : null;
}

export class Scanner {
  #detector;
  #video;
  #stream = null;

  constructor(detector, video) {
    this.#detector = detector;
    this.#video = video;
  }

  static async make(video) {
    const detector = await makeDetector().catch(() => null);
    return detector && new Scanner(detector, video);
  }

  get hasCamera() {
    return Boolean(navigator.mediaDevices?.getUserMedia);
  }

  /** The text of the first code in a picture, or null. */
  async inPicture(file) {
    const picture = await createImageBitmap(file);
    const codes = await this.#detector.detect(picture);
    return codes[0]?.rawValue ?? null;
  }

  /** The text of the first code before the camera, or null when `stop` was called first. */
  async atCamera() {
    this.stop();
    const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    this.#stream = stream;
    this.#video.srcObject = stream;
    this.#video.hidden = false;
    await this.#video.play();
    while (this.#stream === stream) {
      const codes = await this.#detector.detect(this.#video).catch(() => []);
      if (codes.length > 0) {
        this.stop();
        return codes[0].rawValue;
      }
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }
    return null;
  }

  stop() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = null;
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }
}

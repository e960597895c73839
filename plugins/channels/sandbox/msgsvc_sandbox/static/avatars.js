// Round signs for bots, as avatars.py makes them on the server.

const TONES = 6;

export function fillAvatar(element, name, key) {
  const names = name.trim().split(/\s+/);
  const letters = [names[0], ...(names.length > 1 ? [names.at(-1)] : [])].map((text) => [...text][0] ?? "");
  element.textContent = letters.join("").toUpperCase();
  element.dataset.tone = [...key].reduce((sum, character) => sum + character.codePointAt(0), 0) % TONES;
}

/** What the element says, in English and Russian. `{name}` is a messenger, `{time}` the time that is left. */
const TEXTS = {
  lead: ["Open a messenger and press Yes there.", "Откройте мессенджер и нажмите там «Да»."],
  leadNumber: ["Open a messenger and choose this number there:", "Откройте мессенджер и выберите там это число:"],
  open: ["Open {name}", "Открыть {name}"],
  newTab: ["opens in a new tab", "откроется в новой вкладке"],
  write: ["Write there:", "Напишите там:"],
  scan: ["QR code for {name}", "QR-код для {name}"],
  starting: ["One moment…", "Одну минуту…"],
  waiting: ["Waiting for your answer in the messenger…", "Ждём вашего ответа в мессенджере…"],
  offline: ["No connection. Trying again…", "Нет связи. Пробуем ещё раз…"],
  left: ["Valid for {time}", "Действует ещё {time}"],
  ending: ["Less than a minute is left.", "Осталось меньше минуты."],
  confirmed: ["Confirmed. One moment…", "Подтверждено. Одну минуту…"],
  denied: ["The sign-in was cancelled in the messenger.", "Вход отменён в мессенджере."],
  expired: ["The time is up.", "Время вышло."],
  failed: ["The sign-in did not work.", "Войти не удалось."],
  more: ["Get more time", "Продлить время"],
  again: ["Try again", "Попробовать ещё раз"],
  cancel: ["Cancel", "Отмена"],
} satisfies Record<string, [en: string, ru: string]>;

export type Texts = Record<keyof typeof TEXTS, string>;

/** The texts in Russian for such a language tag, in English for any other; and the language that they are in. */
export function textsFor(tag: string): [language: string, texts: Texts] {
  const russian = /^ru\b/i.test(tag);
  const texts = Object.entries(TEXTS).map(([name, [en, ru]]) => [name, russian ? ru : en]);
  return [russian ? "ru" : "en", Object.fromEntries(texts) as Texts];
}

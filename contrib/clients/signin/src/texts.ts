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

export type Name = keyof typeof TEXTS;

export type Texts = Record<Name, string>;

/**
 * Writes a text into an element, with a value in its braces and what stands behind it, and says which language it is in,
 * unless the page gave it: then it is in the page's.
 */
export type Put = <E extends HTMLElement>(node: E, name: Name, value?: string, ...behind: (Node | string)[]) => E;

/** Writes in Russian for such a language tag, in English for any other, but for the texts that the page gives. */
export function createPut(tag: string, given: DOMStringMap): Put {
  const russian = /^ru\b/i.test(tag);
  return (node, name, value = "", ...behind) => {
    // By the style it has a direction as well.
    if (name in given) node.removeAttribute("lang");
    else node.lang = russian ? "ru" : "en";
    node.replaceChildren((given[name] ?? TEXTS[name][+russian]!).replace(/{.+}/, () => value), ...behind);
    return node;
  };
}

// Moments as a person reads them, in the page's language and the reader's own time zone.

import { lang, word } from "./page.js";

const clock = new Intl.DateTimeFormat(lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat(lang, { day: "numeric", month: "long" });
const shortDate = new Intl.DateTimeFormat(lang, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(lang, { dateStyle: "long", timeStyle: "medium" });

export const dayOf = (ms) => new Date(ms).toDateString();

const today = () => dayOf(Date.now());
const yesterday = () => {
  const moment = new Date();
  moment.setDate(moment.getDate() - 1);
  return moment.toDateString();
};

/** The heading above the messages of a day. */
export function dayName(ms) {
  const day = dayOf(ms);
  if (day === today()) return word("today");
  return day === yesterday() ? word("yesterday") : date.format(ms);
}

/** Fills a <time>: the clock, or in `brief` form the date of another day. */
export function fillTime(element, ms, brief = false) {
  element.dateTime = new Date(ms).toISOString();
  element.title = full.format(ms);
  element.textContent = brief && dayOf(ms) !== today() ? shortDate.format(ms) : clock.format(ms);
}

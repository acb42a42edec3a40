/**
 * The page that a server shows: a list of its runs, or one of them, as the hash of the URL says. Every address is
 * relative to the page, so it works wherever the server is mounted.
 */

import { element, mark, write } from "./draw.js";
import { Kept } from "./kept.js";
import { ListScreen } from "./list.js";
import { hashOf, placeOf } from "./listing.js";
import { RunScreen } from "./one.js";
import { label } from "./texts.js";
import { TokenScreen } from "./token.js";

const NAME = "agents_progress";
const LANGUAGES = { en: "English", zh: "中文" };

class Site {
  /** Kept in this tab alone, for this place alone, and sent in a header alone. */
  #token = new Kept(() => sessionStorage, `${NAME}.token ${location.pathname}`);
  #chosen = new Kept(() => localStorage, `${NAME}.language`);
  #language = [this.#chosen.text, ...ofBrowser()].find((name) => Object.hasOwn(LANGUAGES, name)) ?? "en";
  #screen = null;
  /** The part of the list that was seen last, to go back to. */
  #query = new URLSearchParams();
  #main = element("main");
  #forget = element("button", { type: "button", hidden: true });
  #languages = element("select", { id: "language" });
  #languagesName = element("label", { for: "language", class: "unseen" });

  constructor() {
    this.#languages.append(
      ...Object.entries(LANGUAGES).map(([value, name]) => element("option", { value, lang: value }, name)),
    );
    this.#languages.value = this.#language;
    this.#languages.addEventListener("change", () => {
      this.#chosen.text = this.#languages.value;
      this.#speak(this.#languages.value);
    });
    this.#forget.addEventListener("click", () => this.#use(""));
    const home = element("a", { class: "home", href: "#" }, NAME);
    document.body.append(element("header", {}, home, this.#forget, this.#languagesName, this.#languages), this.#main);
    window.addEventListener("hashchange", () => this.#go(true));
    this.#go(false);
  }

  /** Shows what the hash names. The focus follows somebody who went there, and nobody else. */
  #go(byHand) {
    const place = placeOf(location.hash);
    if (place.query) this.#query = place.query;
    if (place.query && this.#screen instanceof ListScreen) this.#screen.open(place.query);
    else if (place.query) this.#show(new ListScreen(place.query, this.#given()));
    else this.#show(new RunScreen(place.run_id, this.#given()));
    if (byHand) this.#screen.focus();
  }

  #given() {
    return {
      token: () => this.#token.text,
      onStranger: () => this.#ask(),
      onTitle: () => this.#entitle(),
      list: hashOf(this.#query),
    };
  }

  /** Asks for a token; one that was used is wrong. */
  #ask() {
    const wrong = this.#token.text !== "";
    this.#token.text = "";
    this.#show(new TokenScreen(wrong, (text) => this.#use(text)));
    this.#screen.focus();
  }

  #use(token) {
    this.#token.text = token;
    this.#screen.leave();
    this.#screen = null;
    this.#go(true);
  }

  #show(screen) {
    this.#screen?.leave();
    this.#screen = screen;
    this.#forget.hidden = this.#token.text === "";
    this.#speak(this.#language);
    this.#main.replaceChildren(...screen.nodes);
  }

  #speak(language) {
    this.#language = language;
    mark(document.documentElement, { lang: language });
    write(this.#forget, label("token_forget", language));
    write(this.#languagesName, label("language", language));
    this.#screen.speak(language);
    this.#entitle();
  }

  #entitle() {
    document.title = `${this.#screen.title} · ${NAME}`;
  }
}

/** The languages that the browser asks for, without their countries. */
const ofBrowser = () => navigator.languages.map((tag) => tag.split("-")[0].toLowerCase());

if (globalThis.document !== undefined) new Site();

/** The build puts the minified style sheet there. */
declare module "*.css" {
  const css: string;
  export default css;
}

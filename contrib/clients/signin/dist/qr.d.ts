/** QR codes (ISO/IEC 18004) at error correction level M, in versions 1-10: links of up to 213 bytes. */
/** The dark modules as the `d` of an SVG path, and the code's width in modules; null for a longer text. */
export declare function qrPath(text: string): {
    size: number;
    d: string;
} | null;

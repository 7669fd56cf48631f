// viewer.js - Gaussians in a page by themselves: WebGL2, sorted in a worker.
//
// The page holds rows of 32 bytes (a .splat) as base64. A texture has two texels for each row: its
// place and colour, and its covariance as half floats. One quad is drawn for each row, farthest
// first; the order comes from the worker whenever the view turned.
"use strict";

(function () {
const ROW = 32, ACROSS = 2048; // bytes; texels of a line of the texture
const canvas = document.getElementById("view"), note = document.getElementById("note");

function fail(text) {
    note.textContent = text;
    throw new Error(text);
}

// ---- the rows ----

function decode(text) {
    const binary = atob(text.trim()), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
}

const toFloat = new Float32Array(1), toBits = new Uint32Array(toFloat.buffer);
function half(v) { // as 16 bits; what is too small is 0, what is too large the largest
    toFloat[0] = v;
    const bits = toBits[0], sign = bits >>> 16 & 0x8000, exponent = (bits >>> 23 & 255) - 112;
    if (exponent <= 0) return sign;
    if (exponent >= 31) return sign | 0x7bff;
    return sign | exponent << 10 | bits >>> 13 & 0x3ff;
}

function covariance(s, q, out) {
    const n = Math.hypot(q[0], q[1], q[2], q[3]) || 1;
    const w = q[0] / n, x = q[1] / n, y = q[2] / n, z = q[3] / n;
    const m = [ // rotation times scales, column by column
        (1 - 2 * (y * y + z * z)) * s[0], 2 * (x * y + w * z) * s[0], 2 * (x * z - w * y) * s[0],
        2 * (x * y - w * z) * s[1], (1 - 2 * (x * x + z * z)) * s[1], 2 * (y * z + w * x) * s[1],
        2 * (x * z + w * y) * s[2], 2 * (y * z - w * x) * s[2], (1 - 2 * (x * x + y * y)) * s[2]];
    const dot = (i, j) => m[i] * m[j] + m[3 + i] * m[3 + j] + m[6 + i] * m[6 + j];
    out[0] = dot(0, 0), out[1] = dot(0, 1), out[2] = dot(0, 2);
    out[3] = dot(1, 1), out[4] = dot(1, 2), out[5] = dot(2, 2);
}

const bytes = decode(document.getElementById("splats").textContent);
const count = Math.floor(bytes.length / ROW);
const floats = new Float32Array(bytes.buffer, 0, count * ROW / 4);
const places = new Float32Array(3 * count);
const lines = Math.max(1, Math.ceil(2 * count / ACROSS));
const texels = new Uint32Array(4 * ACROSS * lines);
(function fill() {
    const bits = new Uint32Array(bytes.buffer, 0, count * ROW / 4), c = new Float64Array(6);
    for (let i = 0; i < count; i++) {
        const f = 8 * i, to = 8 * i;
        for (let k = 0; k < 3; k++) {
            places[3 * i + k] = floats[f + k];
            texels[to + k] = bits[f + k];
        }
        texels[to + 3] = bits[f + 6];
        const q = [];
        for (let k = 0; k < 4; k++) q.push((bytes[ROW * i + 28 + k] - 128) / 128);
        covariance([floats[f + 3], floats[f + 4], floats[f + 5]], q, c);
        for (let k = 0; k < 3; k++) texels[to + 4 + k] = half(c[2 * k]) | half(c[2 * k + 1]) << 16;
    }
})();

// ---- the worker that sorts ----

function sorter() { // its text is run in the worker
    let places = null;
    onmessage = function (message) {
        if (message.data.places) {
            places = message.data.places;
            return;
        }
        const axis = message.data.axis, n = places.length / 3, BINS = 65536;
        const depth = new Float32Array(n), order = new Uint32Array(n), first = new Uint32Array(BINS + 1);
        let least = Infinity, most = -Infinity;
        for (let i = 0; i < n; i++) {
            const d = axis[0] * places[3 * i] + axis[1] * places[3 * i + 1] + axis[2] * places[3 * i + 2];
            depth[i] = d;
            if (d < least) least = d;
            if (d > most) most = d;
        }
        const scale = most > least ? (BINS - 1) / (most - least) : 0;
        const bin = i => BINS - 1 - Math.floor((depth[i] - least) * scale); // farthest first
        for (let i = 0; i < n; i++) first[bin(i) + 1]++;
        for (let b = 0; b < BINS; b++) first[b + 1] += first[b];
        for (let i = 0; i < n; i++) order[first[bin(i)]++] = i;
        postMessage({order: order, axis: axis}, [order.buffer]);
    };
}
const worker = new Worker(URL.createObjectURL(
    new Blob(["(" + sorter.toString() + ")()"], {type: "text/javascript"})));
worker.postMessage({places: places});

// ---- the program ----

const VERTEX = `#version 300 es
precision highp float;
precision highp usampler2D;
uniform usampler2D rows;
uniform mat4 view;
uniform vec4 lens; // focal lengths and half sizes, px
layout(location = 0) in vec2 corner;
layout(location = 1) in uint number;
out vec2 at;
out vec4 colour;
void main() {
    int i = int(number) * 2;
    uvec4 a = texelFetch(rows, ivec2(i % ${ACROSS}, i / ${ACROSS}), 0);
    uvec4 b = texelFetch(rows, ivec2((i + 1) % ${ACROSS}, (i + 1) / ${ACROSS}), 0);
    vec3 p = (view * vec4(uintBitsToFloat(a.xyz), 1.0)).xyz; // x right, y down, z forward
    gl_Position = vec4(0.0, 0.0, 2.0, 1.0); // outside
    if (p.z < 0.02) return;
    vec2 c0 = unpackHalf2x16(b.x), c1 = unpackHalf2x16(b.y), c2 = unpackHalf2x16(b.z);
    mat3 c = mat3(c0.x, c0.y, c1.x, c0.y, c1.y, c2.x, c1.x, c2.x, c2.y);
    vec2 limit = 1.3 * lens.zw / lens.xy, t = clamp(p.xy / p.z, -limit, limit);
    mat3 j = mat3(lens.x / p.z, 0.0, 0.0, 0.0, lens.y / p.z, 0.0, -lens.x * t.x / p.z, -lens.y * t.y / p.z, 0.0);
    mat3 m = j * mat3(view);
    mat3 flat_ = m * c * transpose(m);
    float sx = flat_[0][0] + 0.3, sy = flat_[1][1] + 0.3, sxy = flat_[0][1];
    float middle = 0.5 * (sx + sy), off = length(vec2(0.5 * (sx - sy), sxy));
    float large = middle + off, small = max(middle - off, 0.1);
    vec2 along = abs(sxy) < 1e-6 ? (sx >= sy ? vec2(1.0, 0.0) : vec2(0.0, 1.0)) : normalize(vec2(sxy, large - sx));
    vec2 px = corner.x * min(sqrt(large), 1024.0) * along + corner.y * min(sqrt(small), 1024.0) * vec2(-along.y, along.x);
    vec2 centre = p.xy / p.z * lens.xy;
    colour = vec4(a.w & 255u, a.w >> 8 & 255u, a.w >> 16 & 255u, a.w >> 24) / 255.0;
    at = corner;
    gl_Position = vec4((centre + px) / lens.zw * vec2(1.0, -1.0), 0.0, 1.0);
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec2 at;
in vec4 colour;
out vec4 result;
void main() {
    float alpha = colour.a * exp(-0.5 * dot(at, at));
    if (alpha < 1.0 / 255.0) discard;
    result = vec4(colour.rgb * alpha, alpha);
}`;

const gl = canvas.getContext("webgl2", {antialias: false, alpha: false}) ||
    fail("this browser has no WebGL2");
function compile(kind, text) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) fail(gl.getShaderInfoLog(shader));
    return shader;
}
const program = gl.createProgram();
gl.attachShader(program, compile(gl.VERTEX_SHADER, VERTEX));
gl.attachShader(program, compile(gl.FRAGMENT_SHADER, FRAGMENT));
gl.linkProgram(program);
if (!gl.getProgramParameter(program, gl.LINK_STATUS)) fail(gl.getProgramInfoLog(program));
gl.useProgram(program);
if (lines > gl.getParameter(gl.MAX_TEXTURE_SIZE)) fail("the model is too large for this browser");

gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32UI, ACROSS, lines, 0, gl.RGBA_INTEGER, gl.UNSIGNED_INT, texels);
gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-3.3, -3.3, 3.3, -3.3, -3.3, 3.3, 3.3, 3.3]), gl.STATIC_DRAW);
gl.enableVertexAttribArray(0);
gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
const numbers = gl.createBuffer();
gl.bindBuffer(gl.ARRAY_BUFFER, numbers);
gl.enableVertexAttribArray(1);
gl.vertexAttribIPointer(1, 1, gl.UNSIGNED_INT, 0, 0);
gl.vertexAttribDivisor(1, 1);
gl.disable(gl.DEPTH_TEST);
gl.enable(gl.BLEND);
gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
const uniform = name => gl.getUniformLocation(program, name);
const viewAt = uniform("view"), lensAt = uniform("lens");

// ---- the camera: around a point; y of the world goes down, as captures have it ----

function start() { // the middle of the rows, at a distance that most of them fit in
    const middle = [0, 1, 2].map(k => {
        const some = [], step = Math.max(1, Math.floor(count / 10000));
        for (let i = 0; i < count; i += step) some.push(places[3 * i + k]);
        some.sort((a, b) => a - b);
        return some.length ? some[some.length >> 1] : 0;
    });
    const far = [], step = Math.max(1, Math.floor(count / 10000));
    for (let i = 0; i < count; i += step)
        far.push(Math.hypot(...[0, 1, 2].map(k => places[3 * i + k] - middle[k])));
    far.sort((a, b) => a - b);
    return {middle: middle, turn: 0.5, lift: 0.3, distance: 2 * (far[Math.floor(0.7 * far.length)] || 1)};
}
let camera = start(), drawn = 0, wanted = true, sorting = false, sortedAxis = null;

function axes() {
    const t = camera.turn, l = camera.lift, z = [Math.sin(t) * Math.cos(l), Math.sin(l), Math.cos(t) * Math.cos(l)];
    const x = [Math.cos(t), 0, -Math.sin(t)]; // y is z cross x
    return {x: x, y: [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]], z: z};
}

function sort(z) {
    if (sorting || count === 0) return;
    if (sortedAxis && z[0] * sortedAxis[0] + z[1] * sortedAxis[1] + z[2] * sortedAxis[2] > 0.9999) return;
    sorting = true;
    worker.postMessage({axis: z});
}
worker.onmessage = function (message) {
    gl.bindBuffer(gl.ARRAY_BUFFER, numbers);
    gl.bufferData(gl.ARRAY_BUFFER, message.data.order, gl.DYNAMIC_DRAW);
    drawn = message.data.order.length;
    sortedAxis = message.data.axis;
    sorting = false;
    wanted = true;
};

function draw() {
    requestAnimationFrame(draw);
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) {
        canvas.width = width;
        canvas.height = height;
        wanted = true;
    }
    const a = axes();
    sort(a.z);
    if (!wanted || drawn === 0) return;
    wanted = false;
    const eye = [0, 1, 2].map(k => camera.middle[k] - camera.distance * a.z[k]);
    const shift = v => -(v[0] * eye[0] + v[1] * eye[1] + v[2] * eye[2]);
    const focal = 0.9 * Math.max(width, height);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniformMatrix4fv(viewAt, false, [a.x[0], a.y[0], a.z[0], 0, a.x[1], a.y[1], a.z[1], 0,
        a.x[2], a.y[2], a.z[2], 0, shift(a.x), shift(a.y), shift(a.z), 1]);
    gl.uniform4f(lensAt, focal, focal, width / 2, height / 2);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, drawn);
}

// ---- hands ----

function turn(dx, dy) {
    camera.turn -= 0.005 * dx;
    camera.lift = Math.min(1.55, Math.max(-1.55, camera.lift + 0.005 * dy));
    wanted = true;
}
function pan(dx, dy) {
    const a = axes(), step = camera.distance / (0.9 * Math.max(canvas.clientWidth, canvas.clientHeight));
    for (let k = 0; k < 3; k++) camera.middle[k] -= step * (dx * a.x[k] + dy * a.y[k]);
    wanted = true;
}
function zoom(factor) {
    camera.distance = Math.min(1e6, Math.max(1e-4, camera.distance * factor));
    wanted = true;
}

const fingers = new Map();
canvas.addEventListener("contextmenu", event => event.preventDefault());
canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, {x: event.clientX, y: event.clientY, pan: event.button === 2 || event.shiftKey});
    note.style.display = "none";
});
for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, event => fingers.delete(event.pointerId));
canvas.addEventListener("pointermove", event => {
    const was = fingers.get(event.pointerId);
    if (!was) return;
    const dx = event.clientX - was.x, dy = event.clientY - was.y;
    if (fingers.size === 2) {
        const other = [...fingers].find(entry => entry[0] !== event.pointerId)[1];
        const before = Math.hypot(was.x - other.x, was.y - other.y);
        const now = Math.hypot(event.clientX - other.x, event.clientY - other.y);
        if (before > 0 && now > 0) zoom(before / now);
        pan(dx / 2, dy / 2);
    } else if (was.pan) {
        pan(dx, dy);
    } else {
        turn(dx, dy);
    }
    was.x = event.clientX;
    was.y = event.clientY;
});
canvas.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.exp(0.001 * event.deltaY));
}, {passive: false});
window.addEventListener("keydown", event => {
    if (event.key === "r" || event.key === "R") camera = start(), wanted = true;
});
draw();
})();

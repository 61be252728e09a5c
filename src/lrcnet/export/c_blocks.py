"""The blocks of an LrcSSM in C: an encoder before all cells, and a norm, a linear map and a gated MLP around each."""

from lrcnet.export.network import NetworkData

_CODE = """
typedef struct { matrix in; array bias; } linear;
typedef struct { matrix read, mlp; array norm_scale, norm_shift, read_bias, skip, mlp_bias; } block;

static void encode(const linear *e, const num *x, num *features) {
  int i;
  for (i = 0; i < MOTORS; i++) features[i] = LOAD(e->bias, i);
  add_product(&e->in, 0, MOTORS, x, features);
}

/* features of mean 0 and variance 1, scaled and shifted */
static void normalise(const block *b, const num *features, num *inner) {
  wide sum = 0;
  num mean, spread;
  int i;
  for (i = 0; i < MOTORS; i++) sum += features[i];
  mean = SUM(sum / MOTORS);
  for (i = 0; i < MOTORS; i++) inner[i] = ADD(features[i], -mean);
  spread = deviation(inner, MOTORS);
  for (i = 0; i < MOTORS; i++) inner[i] = ADD(TIMES(b->norm_scale, i, DIV(inner[i], spread)), LOAD(b->norm_shift, i));
}

/* the map of the states and the gated MLP, added to the features */
static void transform(const block *b, const num *h, const num *inner, num *features) {
  num z[MOTORS], gates[2 * MOTORS];
  int i;
  for (i = 0; i < MOTORS; i++) z[i] = ADD(LOAD(b->read_bias, i), TIMES(b->skip, i, inner[i]));
  add_product(&b->read, 0, MOTORS, h, z);
  for (i = 0; i < MOTORS; i++) z[i] = gelu(z[i]);
  for (i = 0; i < 2 * MOTORS; i++) gates[i] = LOAD(b->mlp_bias, i);
  add_product(&b->mlp, 0, 2 * MOTORS, z, gates);
  for (i = 0; i < MOTORS; i++) features[i] = ADD(features[i], MUL(gates[i], sigmoid(gates[MOTORS + i])));
}
"""


def blocks_code(network: NetworkData) -> str:
    """Return the C functions around the cells of an LrcSSM; none for any other network."""
    return "" if network.encoder is None else _CODE


def block_step_lines(network: NetworkData, last_argument: str) -> list[str]:
    """Return the lines of a step from the scaled `reading` to `values`, the features of the last block."""
    gap = "FROM_FLOAT(gap)" if network.timed else "ONE"
    return [
        "  encode(&encoder, reading, values);",
        "  for (l = 0; l < LAYERS; l++) {",
        "    normalise(&blocks[l], values, inner);",
        *([f"    inner[MOTORS] = {gap};"] if network.time_feature else []),
        "    terms(&cells[l], inner, t);",
        f"    advance(&cells[l], t, state->h[l], {last_argument});",
        "    transform(&blocks[l], state->h[l], inner, values);",
        "  }",
    ]

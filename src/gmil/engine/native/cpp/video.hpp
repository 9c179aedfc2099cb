// Cells of gradient directions for HOG3D. One thread: videos are worked on side by side.
#pragma once

#include "memory.hpp"
#include "simd.hpp"

namespace gmil {
namespace {

using Wrapped = std::uint32_t;  // sums that may wrap around; differences of corners are exact nevertheless

// Go on with the sums (3, height + 1, width + 1) by twice the gradient of a frame, in x, y and time, by central
// differences. At the borders the outermost pixel is repeated.
void integrate_gradients(const Frames& frames, std::int32_t* sums) {
  const std::int64_t height = frames.height, width = frames.width;
  Buffer<Wrapped> above = zeros<Wrapped>(3 * width);  // sums over the rows of this frame so far
  Wrapped* const in_x = above.get();
  Wrapped* const in_y = in_x + width;
  Wrapped* const in_time = in_y + width;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* const row = frames.now + y * width;
    const std::uint8_t* const up = frames.now + (y > 0 ? y - 1 : 0) * width;
    const std::uint8_t* const down = frames.now + (y + 1 < height ? y + 1 : y) * width;
    const std::uint8_t* const earlier = frames.before + y * width;
    const std::uint8_t* const later = frames.after + y * width;
    Wrapped sum_y = 0, sum_time = 0;
    for (std::int64_t x = 0; x < width; ++x) {
      sum_y += static_cast<Wrapped>(down[x]) - up[x];
      sum_time += static_cast<Wrapped>(later[x]) - earlier[x];
      in_y[x] += sum_y;
      in_time[x] += sum_time;
    }
    const Wrapped first = 2 * static_cast<Wrapped>(row[0]);
    for (std::int64_t x = 0; x + 1 < width; ++x) in_x[x] += static_cast<Wrapped>(row[x + 1]) + row[x] - first;
    in_x[width - 1] += 2 * static_cast<Wrapped>(row[width - 1]) - first;
    for (std::int64_t c = 0; c < 3; ++c) {
      Wrapped* const to = reinterpret_cast<Wrapped*>(sums) + (c * (height + 1) + y + 1) * (width + 1) + 1;
      const Wrapped* const from = above.get() + c * width;
      for (std::int64_t x = 0; x < width; ++x) to[x] += from[x];
    }
  }
}

// The faces of a polyhedron, one a lane; lanes without a face get no vote.
template <int V>
struct Faces {
  Vec<float> normal[3][V];
  Vec<float> threshold[V];
  bool half;

  explicit Faces(const Polyhedron& solid) : half(solid.half) {
    constexpr int L = kLanes<float>;
    for (int v = 0; v < V; ++v) {
      float lane[4][L];
      for (int i = 0; i < L; ++i) {
        const bool is_face = v * L + i < solid.n_faces;
        for (int c = 0; c < 3; ++c) lane[c][i] = is_face ? solid.normals[3 * (v * L + i) + c] : 0.0F;
        lane[3][i] = is_face ? -solid.neighbour_cosine : -1.0F;
      }
      for (int c = 0; c < 3; ++c) normal[c][v] = load(lane[c]);
      threshold[v] = load(lane[3]);
    }
  }

  // Add the histogram of a gradient: its length, shared out by how far projections exceed that on a neighbour.
  void add(float x, float y, float t, float length, float* to) const {
    const Vec<float> zero = broadcast(0.0F), a = broadcast(x), b = broadcast(y), c = broadcast(t);
    const Vec<float> size = broadcast(length);
    Vec<float> vote[V], squares = zero;
    GMIL_UNROLL
    for (int v = 0; v < V; ++v) {
      Vec<float> projection = add_product<float>(add_product<float>(a * normal[0][v], b, normal[1][v]), c, normal[2][v]);
      if (half) projection = absolute<float>(projection);
      const Vec<float> excess = add_product<float>(projection, size, threshold[v]);
      vote[v] = choose<float>(is_less<float>(zero, excess), excess, zero);
      squares = add_product<float>(squares, vote[v], vote[v]);
    }
    const float total = sum_lanes<float>(squares);
    if (!(total > 0)) return;
    const Vec<float> weight = broadcast(length / std::sqrt(total));
    GMIL_UNROLL
    for (int v = 0; v < V; ++v) {
      store(to + v * kLanes<float>, add_product<float>(load(to + v * kLanes<float>), weight, vote[v]));
    }
  }
};

// The mean gradients of a row of blocks, from two rows of corners, each later minus earlier: (3, n_columns + 1).
inline void mean_gradients(const Grid& grid, const Wrapped* upper, const Wrapped* lower, float height, float* means) {
  const std::int64_t n = grid.n_columns;
  for (std::int64_t c = 0; c < 3; ++c) {
    const Wrapped* const a = upper + c * (n + 1);
    const Wrapped* const b = lower + c * (n + 1);
    for (std::int64_t j = 0; j < n; ++j) {
      const Wrapped sum = (b[j + 1] - a[j + 1]) - (b[j] - a[j]);
      const float volume = height * static_cast<float>(grid.columns[j + 1] - grid.columns[j]);
      means[c * n + j] = static_cast<float>(static_cast<std::int32_t>(sum)) / volume;
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const float x = means[j], y = means[n + j], t = means[2 * n + j];
    means[3 * n + j] = std::sqrt(x * x + y * y + t * t);
  }
}

// Add the histograms of the blocks of one layer to their cells, (n_cells, n_faces), and the lengths of their gradients,
// (n_cells). `corners` holds the sums at the corners of blocks when the layer began, and then those of now.
template <int V>
void add_layer(const Grid& grid, const std::int32_t* sums, double frames, const Polyhedron& solid,
               std::int32_t* corners, float* histograms, float* lengths) {
  constexpr std::int64_t kPadded = V * kLanes<float>;
  const std::int64_t n = grid.n_columns, n_cells = n / grid.blocks, per_row = 3 * (n + 1);
  const Faces<V> faces(solid);
  Buffer<Wrapped> slab(2 * per_row);
  Buffer<float> means(4 * n), votes = zeros<float>(n_cells * kPadded);
  for (std::int64_t r = 0; r <= grid.n_rows; ++r) {
    Wrapped* const lower = slab.get() + (r % 2) * per_row;
    for (std::int64_t c = 0; c < 3; ++c) {
      const std::int32_t* const from = sums + (c * grid.height + grid.rows[r]) * grid.width;
      std::int32_t* const held = corners + (c * (grid.n_rows + 1) + r) * (n + 1);
      for (std::int64_t j = 0; j <= n; ++j) {
        const std::int32_t now = from[grid.columns[j]];
        lower[c * (n + 1) + j] = static_cast<Wrapped>(now) - static_cast<Wrapped>(held[j]);
        held[j] = now;
      }
    }
    if (r == 0) continue;
    const Wrapped* const upper = slab.get() + ((r + 1) % 2) * per_row;
    // The sums hold twice the gradient.
    const float height = static_cast<float>(2 * frames * static_cast<double>(grid.rows[r] - grid.rows[r - 1]));
    mean_gradients(grid, upper, lower, height, means.get());
    const std::int64_t first_cell = (r - 1) / grid.blocks * n_cells;
    for (std::int64_t j = 0; j < n; ++j) {
      const float length = means[3 * n + j];
      faces.add(means[j], means[n + j], means[2 * n + j], length, votes.get() + j / grid.blocks * kPadded);
      lengths[first_cell + j / grid.blocks] += length;
    }
    if (r % grid.blocks != 0) continue;
    for (std::int64_t cell = 0; cell < n_cells; ++cell) {
      float* const to = histograms + (first_cell + cell) * solid.n_faces;
      for (std::int64_t k = 0; k < solid.n_faces; ++k) to[k] += votes[cell * kPadded + k];
    }
    fill(votes.get(), n_cells * kPadded, 0.0F);
  }
}

void add_directions(const Grid& grid, const std::int32_t* sums, double frames, const Polyhedron& solid,
                    std::int32_t* corners, float* histograms, float* lengths) {
  using Layer = decltype(&add_layer<1>);
  constexpr Layer kLayers[] = {add_layer<1>, add_layer<2>, add_layer<3>, add_layer<4>, add_layer<5>};
  const std::int64_t n_vectors = (solid.n_faces + kLanes<float> - 1) / kLanes<float>;
  kLayers[n_vectors - 1](grid, sums, frames, solid, corners, histograms, lengths);
}

inline float sum_of_squares(const float* values, std::int64_t size) {
  Vec<float> sum = broadcast(0.0F);
  std::int64_t i = 0;
  for (; i + kLanes<float> <= size; i += kLanes<float>) {
    const Vec<float> v = load(values + i);
    sum = add_product<float>(sum, v, v);
  }
  float total = sum_lanes<float>(sum);
  for (; i < size; ++i) total += values[i] * values[i];
  return total;
}

// Divide by the length, and let nothing exceed `most`; zeros stay zeros.
inline void to_unit_length(float* values, std::int64_t size, float most) {
  const float squares = sum_of_squares(values, size);
  if (!(squares > 0)) return;
  const float share = 1.0F / std::sqrt(squares);
  for (std::int64_t i = 0; i < size; ++i) {
    const float value = values[i] * share;
    values[i] = value < most ? value : most;
  }
}

// Boxes of side x side x n_layers cells as rows of length one. The cells (n_layers, n_rows, n_columns, n_faces) are a
// ring in time; `first` is its oldest layer. `places` holds the row and the column of the first cell of every box.
void cell_boxes(const Cells& cells, std::int64_t first, const std::int64_t* places, std::int64_t n_boxes,
                std::int64_t side, float clip, float* out) {
  const std::int64_t length = side * side * cells.n_layers * cells.n_faces;
  const std::size_t n_bytes = static_cast<std::size_t>(cells.n_faces) * sizeof(float);
  for (std::int64_t box = 0; box < n_boxes; ++box) {
    float* const values = out + box * length;
    float* to = values;
    for (std::int64_t y = places[2 * box]; y < places[2 * box] + side; ++y) {
      for (std::int64_t x = places[2 * box + 1]; x < places[2 * box + 1] + side; ++x) {
        for (std::int64_t k = 0; k < cells.n_layers; ++k, to += cells.n_faces) {
          const std::int64_t layer = (first + k) % cells.n_layers;
          const float* const from = cells.data + ((layer * cells.n_rows + y) * cells.n_columns + x) * cells.n_faces;
          std::memcpy(to, from, n_bytes);
        }
      }
    }
    to_unit_length(values, length, clip);
    to_unit_length(values, length, 1.0F);
  }
}

}  // namespace
}  // namespace gmil

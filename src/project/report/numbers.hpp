#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <remote/history.hpp>

namespace remote::project {

// The numbers of a line of output: "epoch 3/10  loss 0.31", "loss=0.31, lr: 1e-3", "12%| 5/40 [00:01,
// loss=2.5]", or an object of JSON. What is a date, a time, an address or a version is none. A name stands
// once: the last one counts.
std::vector<NamedNumber> numbers_of(std::string_view line);

// Takes the numbers of a line into `all`, where the last of a name counts; none of a line that a launcher or
// torch's agent wrote.
void take_numbers(std::string_view line, std::vector<NamedNumber>& all);

// Whether it is what people look at first.
bool is_loss(std::string_view name);

// Makes curves of the numbers of one rank's lines. It holds at most about `most_points` points a curve, and
// `most_names` names: whatever is printed, memory stays bounded.
class CurveReader {
 public:
  static constexpr std::size_t most_names = 64;

  explicit CurveReader(std::size_t most_points = 2000) : most_points_(most_points) {}

  void take(std::string_view line);
  // The curves with two values at least; losses first, then those with the most values, at most `most`. What
  // a program that has begun `begun` times printed once each time is none, unless a counter stands beside it.
  // Their rank and key are left to the caller.
  std::vector<Curve> curves(std::size_t begun = 1, std::size_t most = 12) const;

 private:
  struct Points {
    std::vector<double> at;
    std::vector<double> index;
    std::vector<double> values;
    std::string over;       // what `at` counts; "" once a value had none, or a part of the training began
    double epoch = -1;      // of the last line that had one
    std::size_t every = 1;  // each so many-th is kept
    std::size_t seen = 0;
  };
  // A training that was started again from a checkpoint does its steps once more: the later ones count.
  static void go_back(Points& points, double to);
  void add(Points& points, const NamedNumber* over, double value) const;

  std::size_t most_points_;
  std::map<std::string, Points> points_;
};

}  // namespace remote::project

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <remote/history.hpp>

namespace remote::project {

// The numbers in a line of output: "epoch 3/10  loss 0.31", "loss=0.31, lr: 1e-3", "12%| 5/40 [00:01,
// loss=2.5]", or a JSON object. Ignores dates, times, addresses and versions. Each name occurs once, with its
// last value.
std::vector<NamedNumber> numbers_of(std::string_view line);

// Adds the numbers in a line to `all`, replacing earlier values of the same name. Ignores lines of launchers
// and torch's agents.
void take_numbers(std::string_view line, std::vector<NamedNumber>& all);

// Whether it is a loss, the number that users look at first.
bool is_loss(std::string_view name);

// Collects curves from the numbers in one rank's lines. Memory is bounded: about `most_points` points per
// curve, and `most_names` names.
class CurveReader {
 public:
  static constexpr std::size_t most_names = 64;

  explicit CurveReader(std::size_t most_points = 2000) : most_points_(most_points) {}

  void take(std::string_view line);
  // The curves with at least two values, at most `most`: losses first, then those with the most values. A
  // number that a program prints only once per start (`begun`: number of starts) is not a curve, unless there
  // is a counter next to it. The caller sets their rank and key.
  std::vector<Curve> curves(std::size_t begun = 1, std::size_t most = 12) const;

 private:
  struct Points {
    std::vector<double> at;
    std::vector<double> index;
    std::vector<double> values;
    std::string over;       // the counter in `at`; "" once a value had none, or the counter started again
    double epoch = -1;      // from the last line that had one
    std::size_t every = 1;  // keeps every nth value
    std::size_t seen = 0;
  };
  // If training resumes from a checkpoint, it repeats steps: drops the earlier values of these.
  static void go_back(Points& points, double to);
  void add(Points& points, const NamedNumber* over, double value) const;

  std::size_t most_points_;
  std::map<std::string, Points> points_;
};

}  // namespace remote::project

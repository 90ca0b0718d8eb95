#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "wire/fields.hpp"

// The output of a rank of `check --burn` (src/server/python/burn.py).

namespace remote::wire {

// Each message is a line that starts with this, followed by JSON.
constexpr std::string_view burn_mark = "remote-burn ";

constexpr Limits burn_rank = in_range(0, 1 << 30);
constexpr Limits burn_rate = in_range(0, std::numeric_limits<long long>::max());

enum class BurnBackend { nccl, gloo };
enum class BurnNumber { bfloat16, float16, float32 };
enum class BurnRequirement { cuda, nccl };
enum class BurnProblem { no_torch, no_distributed, timeout };

// The last message of a successful rank. All rates are averages.
struct BurnedDevice {
  static constexpr std::string_view kind = "device";

  int rank = 0;
  BurnBackend backend = BurnBackend::gloo;
  BurnNumber type = BurnNumber::float32;  // of the matrix elements
  double tflops = 0;
  double bus_gbit_s = 0;  // of an all-reduce; 0 if there is only one rank
  std::string name{};

  static constexpr auto fields() {
    using D = BurnedDevice;
    return field_list(field("rank", &D::rank, burn_rank), field("backend", &D::backend),
                      field("type", &D::type), field("tflops", &D::tflops, burn_rate),
                      field("bus_gbit_s", &D::bus_gbit_s, burn_rate),
                      field("name", &D::name, a_word("._- ", 255)));
  }
};

// Two neighboring ranks exchanged data, in each direction in turn.
struct BurnedLink {
  static constexpr std::string_view kind = "link";

  int from = 0;
  int to = 0;
  double gbit_s = 0;

  static constexpr auto fields() {
    using L = BurnedLink;
    return field_list(field("from", &L::from, burn_rank), field("to", &L::to, burn_rank),
                      field("gbit_s", &L::gbit_s, burn_rate));
  }
};

// Why this rank cannot use NCCL.
struct BurnLacks {
  static constexpr std::string_view kind = "lacks";

  BurnRequirement what = BurnRequirement::cuda;

  static constexpr auto fields() { return field_list(field("what", &BurnLacks::what)); }
};

struct BurnFailed {
  static constexpr std::string_view kind = "failed";

  BurnProblem problem = BurnProblem::timeout;

  static constexpr auto fields() { return field_list(field("problem", &BurnFailed::problem)); }
};

using BurnMessage = std::variant<BurnedDevice, BurnedLink, BurnLacks, BurnFailed>;

}  // namespace remote::wire

template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::BurnBackend> = {std::string_view("nccl"),
                                                                                   std::string_view("gloo")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::BurnNumber> = {
    std::string_view("bfloat16"), std::string_view("float16"), std::string_view("float32")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::BurnRequirement> = {
    std::string_view("cuda"), std::string_view("nccl")};
template <>
inline constexpr std::array remote::wire::enum_names<remote::wire::BurnProblem> = {
    std::string_view("no_torch"), std::string_view("no_distributed"), std::string_view("timeout")};

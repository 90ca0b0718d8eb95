#pragma once

#include <string>
#include <vector>

// How fast the devices of servers compute, and how fast their ranks exchange data.

namespace remote {

// One rank and its device.
struct BurnDevice {
  int rank = 0;
  std::string server{};
  std::string device{};  // "NVIDIA A100-SXM4-80GB", or the processor's name where there is no GPU
  std::string type{};    // of the numbers in the matrices: "bfloat16", "float16" or "float32"
  double tflops = 0;     // achieved by matrix products, 10^12 operations a second
  double promised = 0;   // what the maker promises for dense matrices of that type; 0: not known
  double bus_gbit_s =
      0;              // bus bandwidth of an all-reduce over all ranks, as this rank measured it; 0: one rank
  bool slow = false;  // under 80 % of the median of the devices of its kind
};

// Between two ranks that are neighbours, while their pairs exchange data side by side.
struct BurnLink {
  int from = 0;
  int to = 0;
  double gbit_s = 0;
  bool slow = false;  // under 70 % of the median of those like it: within a server, or between two
};

struct Burn {
  std::vector<BurnDevice> devices{};  // by rank
  std::vector<BurnLink> links{};
  std::string backend{};  // nccl or gloo
  double bus_gbit_s = 0;  // the median
  std::string error{};    // why it could not be done; empty: it was
};

}  // namespace remote

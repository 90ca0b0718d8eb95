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
  // What keeps this rank from NCCL: "cuda" (torch sees none), "nccl" (torch was built without it); empty:
  // nothing does.
  std::string lacks{};
};

// Between two ranks that are neighbours, while their pairs exchange data side by side.
struct BurnLink {
  int from = 0;
  int to = 0;
  double gbit_s = 0;
  bool slow = false;  // under 70 % of the median of those like it: within a server, or between two
};

// What the burn has left on a server.
struct BurnLeft {
  std::string server{};
  bool runs = false;     // whether something still runs there, or may; else files alone are left
  std::string detail{};  // what is left, for a person
  int job = 0;           // the rank's key: ending and cleaning this job removes what is left
};

struct Burn {
  std::vector<BurnDevice> devices{};  // by rank
  std::vector<BurnLink> links{};
  std::string backend{};  // nccl or gloo, the same on all ranks
  // Why it is gloo although some ranks could use NCCL: "there is no CUDA on node-2"; empty: that is not so.
  std::string backend_reason{};
  double bus_gbit_s = 0;         // the median
  std::string error{};           // why it could not be done; empty: it was
  std::vector<BurnLeft> left{};  // by server; empty, as it should be: nothing
};

// "nccl", or "gloo, as there is no CUDA on node-2".
std::string backend_words(const Burn& burn);

}  // namespace remote

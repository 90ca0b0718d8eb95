#pragma once

#include <string>
#include <vector>

// Results of the burn test: compute speed of each device, and bandwidth between ranks.

namespace remote {

struct BurnDevice {
  int rank = 0;
  std::string server{};
  std::string device{};  // "NVIDIA A100-SXM4-80GB", or the processor's name if there is no GPU
  std::string type{};    // element type of the matrices: "bfloat16", "float16" or "float32"
  double tflops = 0;     // achieved in matrix products, 10^12 operations per second
  double promised = 0;   // the vendor's figure for dense matrices of that type; 0: unknown
  double bus_gbit_s =
      0;  // bus bandwidth of an all-reduce over all ranks, measured by this rank; 0: only one rank
  bool slow = false;  // under 80 % of the median of the devices of its kind
  // Why this rank cannot use NCCL: "cuda" (torch finds no CUDA), "nccl" (torch was built without it); empty:
  // it can.
  std::string lacks{};
};

// The connection between two neighboring ranks, measured while all such pairs exchange data at once.
struct BurnLink {
  int from = 0;
  int to = 0;
  double gbit_s = 0;
  bool slow = false;  // under 70 % of the median of links of the same kind: within a server, or between two
};

// Processes or files of the burn that remain on a server.
struct BurnLeft {
  std::string server{};
  bool runs = false;     // whether processes may still be running; otherwise only files remain
  std::string detail{};  // a description for the user
  int job = 0;           // the rank's job key: killing and cleaning this job removes the rest
};

struct Burn {
  std::vector<BurnDevice> devices{};  // by rank
  std::vector<BurnLink> links{};
  std::string backend{};  // nccl or gloo, the same on all ranks
  // Why the backend is gloo although some ranks could use NCCL: "there is no CUDA on node-2"; otherwise
  // empty.
  std::string backend_reason{};
  double bus_gbit_s = 0;         // the median
  std::string error{};           // why the burn failed; empty if it succeeded
  std::vector<BurnLeft> left{};  // by server; normally empty
};

// "nccl", or "gloo, as there is no CUDA on node-2".
std::string backend_words(const Burn& burn);

}  // namespace remote

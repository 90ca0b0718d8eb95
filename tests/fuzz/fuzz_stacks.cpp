#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/stacks/threads.hpp"
#include "promise.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json_text.hpp"
#include "wire/stacks.hpp"

// Stack dumps, whose names and paths may be anything.

namespace {

using namespace remote;

void check(const std::vector<ThreadStack>& threads) {
  wire::WhyReply reply;
  reply.stacks.push_back({.id = std::string(32, 'a'), .threads = threads});
  const wire::Bytes bytes = wire::encode(reply);
  fuzz::require(bytes.size() <= wire::max_payload, "a stack fits into a message");
  fuzz::require(wire::encode(wire::decode<wire::WhyReply>(bytes)) == bytes, "a stack is a valid message");
  fuzz::require(wire::to_json_text(reply).size() <= wire::max_kept_part, "a stack fits into a kept part");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view dump(reinterpret_cast<const char*>(data), size);
  check(agent::parse_py_spy(dump, 12));
  check(agent::parse_faulthandler(dump));
  return 0;
}

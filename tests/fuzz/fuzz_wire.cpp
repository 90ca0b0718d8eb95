#include <cstddef>
#include <cstdint>
#include <span>

#include "promise.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/job_journal.hpp"
#include "wire/launch_journal.hpp"
#include "wire/link.hpp"
#include "wire/request.hpp"
#include "wire/sweep.hpp"

// Frames and messages from another machine. A decoded message stays the same when it is encoded again.

namespace {

using namespace remote;

template <typename Message>
void decode_twice(std::span<const std::uint8_t> bytes) {
  try {
    const wire::Bytes encoded = wire::encode(wire::decode<Message>(bytes));
    fuzz::require(wire::encode(wire::decode<Message>(encoded)) == encoded,
                  "a message survives encoding and decoding");
  } catch (const wire::Malformed&) {
  }
}

void decode_all(std::span<const std::uint8_t> bytes) {
  decode_twice<wire::Request>(bytes);
  decode_twice<wire::Reply>(bytes);
  decode_twice<wire::JobsToStart>(bytes);
  decode_twice<wire::SweepToBegin>(bytes);
  decode_twice<wire::Provisioning>(bytes);
  decode_twice<wire::AgentHello>(bytes);
  decode_twice<wire::LinkMessage>(bytes);
  decode_twice<wire::SweepMessage>(bytes);
  decode_twice<wire::SweepEntry>(bytes);
  decode_twice<wire::LaunchEntry>(bytes);
  decode_twice<wire::JobEntry>(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span bytes(data, size);
  decode_all(bytes);
  wire::FrameReader reader;
  try {
    const std::size_t half = size / 2;
    for (const auto part : {bytes.first(half), bytes.subspan(half)}) {
      reader.add(part);
      while (const auto frame = reader.next()) {
        fuzz::require(frame->payload.size() <= wire::max_payload, "a frame is bounded");
        decode_all(frame->payload);
      }
    }
  } catch (const wire::Malformed&) {
  }
  return 0;
}

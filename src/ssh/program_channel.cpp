#include "ssh/program_channel.hpp"

#include <utility>

#include "base/strings.hpp"
#include "server/program.hpp"

namespace remote::ssh {
namespace {

// What each line of an answer begins with, the first one among them that says whether the program is needed.
const std::string_view mark = server::program_needed.substr(0, server::program_needed.rfind(' ') + 1);

// So much is kept from others, who limit what a server may say: bytes of a line, and empty lines.
constexpr std::size_t most_kept = 4096;

}  // namespace

// Takes the next line off `data`, or what there is of it, into line_.
ProgramOffer::Found ProgramOffer::next_line(std::string_view& data) {
  const std::size_t end = data.find('\n');
  const bool whole = end != std::string_view::npos;
  const std::string_view piece = data.substr(0, whole ? end + 1 : data.size());
  data.remove_prefix(piece.size());
  line_ += piece;
  if (within_) {
    within_ = !whole;
    return Found::other;
  }
  if (whole) {
    const std::string_view line = trim(line_);
    const bool needed = line == server::program_needed && !sent_;
    sent_ = sent_ || needed;
    answered_ = line_.starts_with(mark) && !needed;
    // An empty line ends what came before, or says that a piece of the program has arrived.
    if (needed || line == server::program_here || (line.empty() && ++empty_ <= most_kept)) {
      line_.clear();
    }
    return needed ? Found::needed : Found::other;
  }
  if (line_.size() <= most_kept &&
      (line_.starts_with(mark.substr(0, line_.size())) || line_.starts_with(mark))) {
    return Found::part;
  }
  within_ = true;
  return Found::other;
}

std::unique_ptr<Flow> open_program(Pump& pump, std::string request, Sink sink,
                                   std::shared_ptr<ProgramOffer> offer) {
  struct State {
    std::string request;
    Sink sink;
    std::shared_ptr<ProgramOffer> offer;
    Flow* flow = nullptr;
  };
  const auto state =
      std::make_shared<State>(State{std::move(request), std::move(sink), std::move(offer), nullptr});
  auto flow =
      std::make_unique<Flow>(pump, server::program_command(), [state](Stream stream, std::string_view data) {
        if (stream == Stream::err) {
          state->sink(stream, data);
          return;
        }
        state->offer->take(
            data, [&] { state->flow->send(server::program_installation() + state->request); },
            [&](std::string_view rest) { state->sink(stream, rest); });
      });
  state->flow = flow.get();
  flow->expect_answer([offer = state->offer] { return offer->answered(); });
  flow->send(state->request);
  return flow;
}

}  // namespace remote::ssh

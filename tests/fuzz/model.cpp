// Model files: any bytes, and any bytes under a checksum that fits, so that what lies behind the
// checksum is reached. A model that is read must be usable.
#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/posterior/dropout_posterior.hpp"
#include "odecast/posterior/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if (bytes[0] & 1) {
    constexpr std::string_view seal = ",\n  \"checksum\": \"fnv1a64:";
    text = text.substr(0, text.rfind(seal));
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    constexpr char digits[] = "0123456789abcdef";
    text += seal;
    for (int i = 60; i >= 0; i -= 4) text += digits[hash >> i & 15];
    text += "\"\n}\n";
  }
  try {
    const Model model = model_from_text(text, "fuzz");
    const DropoutPosterior posterior(model.network);
    posterior.moments(Vector::Zero(model.dimension()));
    fuzz::require(model_to_text(model_from_text(model_to_text(model), "back")) == model_to_text(model));
  } catch (const Error&) {
  }
  return 0;
}

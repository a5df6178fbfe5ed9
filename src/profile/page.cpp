#include "profile/page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.hpp"

namespace tandem::profile {
namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--paper:#f6f7f9;--panel:#fff;--ink:#1c2330;--faint:#667085;--line:#dde1e8;--soft:#eef1f5;
--c0:#3569c6;--c1:#0f8577;--c2:#c4620a;--c3:#7d4fc0;--c4:#b83a78;--c5:#6d7d14;--c6:#1580a8;--c7:#8a5a3c;--grey:#8d95a3;--red:#d03b3b;
--good:#1f8a4c;--warn:#b7791f}
@media(prefers-color-scheme:dark){:root{--paper:#14171d;--panel:#1d2129;--ink:#e6e9ef;--faint:#98a2b3;--line:#343a46;--soft:#262b35;
--c0:#5b8def;--c1:#22a394;--c2:#e0812b;--c3:#9d76dd;--c4:#d9609b;--c5:#93a52b;--c6:#35a3cc;--c7:#b07d5c;--grey:#7a8392;--red:#ef6a6a;
--good:#3fb672;--warn:#d9a441}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1060px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:24px;margin:0}
.sub{color:var(--faint);margin:2px 0 18px;white-space:pre-line}
section{background:var(--panel);border:1px solid var(--line);border-radius:10px;padding:16px 22px 20px;margin:0 0 18px}
h2{font-size:17px;margin:0 0 8px}
p{margin:6px 0 10px;max-width:85ch}
pre{background:var(--soft);border-radius:6px;padding:10px 12px;overflow:auto;font-size:12.5px;line-height:1.4}
code,pre,td.t{font-family:ui-monospace,"DejaVu Sans Mono",Consolas,monospace}
.figures{display:flex;flex-wrap:wrap;gap:12px;margin:4px 0 12px}
.figure{background:var(--soft);border-radius:8px;padding:9px 16px;min-width:120px}
.figure b{display:block;font-size:21px;font-weight:600;line-height:1.25}
.figure span{display:block;color:var(--faint);font-size:13px}
.card{border-left:4px solid var(--grey);background:var(--soft);border-radius:0 8px 8px 0;padding:9px 16px;margin:9px 0}
.card b{display:block}.card p{margin:3px 0 0}
.card.good{border-color:var(--good)}.card.warning{border-color:var(--warn)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px;margin:6px 0}
th{text-align:left;color:var(--faint);font-weight:600;border-bottom:1px solid var(--line);padding:4px 10px 4px 0;white-space:nowrap}
th[title]{text-decoration:underline dotted;text-underline-offset:3px;cursor:help}
td{border-bottom:1px solid var(--line);padding:4px 10px 4px 0;vertical-align:top}
tr:last-child td{border-bottom:0}
td.t{font-size:12.5px;overflow-wrap:anywhere;min-width:90px}td.one{white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td.bar{min-width:110px;white-space:nowrap;font-variant-numeric:tabular-nums}
td.bar i{display:inline-block;height:9px;border-radius:2px;background:var(--c0);margin-right:7px;min-width:1px}
.none{color:var(--faint)}
details{margin:8px 0}summary{cursor:pointer;color:var(--faint)}
svg.drawing{display:block;max-width:100%;height:auto;margin:8px 0;font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
svg.drawing text{fill:var(--ink)}svg.drawing .faint{fill:var(--faint)}
svg.drawing .grid{stroke:var(--line);stroke-width:1;fill:none}.stripe{fill:var(--soft)}
.c0{fill:var(--c0);stroke:var(--c0)}.c1{fill:var(--c1);stroke:var(--c1)}.c2{fill:var(--c2);stroke:var(--c2)}
.c3{fill:var(--c3);stroke:var(--c3)}.c4{fill:var(--c4);stroke:var(--c4)}.c5{fill:var(--c5);stroke:var(--c5)}
.c6{fill:var(--c6);stroke:var(--c6)}.c7{fill:var(--c7);stroke:var(--c7)}
.grey{fill:var(--grey);stroke:var(--grey)}.red{fill:var(--red);stroke:var(--red)}
path.line{fill:none;stroke-width:1.8;stroke-linejoin:round}path.area{fill-opacity:.22;stroke-width:1.5}
line.mark{stroke-width:1.3;stroke-dasharray:5 4}line.upright{stroke-width:1;stroke-dasharray:2 3}
svg.drawing .blocks rect{stroke-width:.5}svg.drawing text.in{fill:#fff;font-size:11px;pointer-events:none}
svg.drawing .red-ink{fill:var(--red)}
svg.timeline{cursor:grab}
)css";

// Wheel: nearer and farther around the pointer; drag: along; double click: all of it. Works on what svg(Timeline) wrote.
constexpr std::string_view kScript = R"js(
for(const s of document.querySelectorAll('svg.timeline')){
const d=s.dataset,B=+d.begin,E=+d.end,W=+d.plot,L=+d.left,N='http://www.w3.org/2000/svg';
const inner=s.querySelector('svg'),ticks=s.querySelector('.ticks'),labels=s.querySelector('.labels');let a=B,b=E,items=null;
const get=()=>items=items||[...inner.querySelectorAll('.blocks rect')].map(r=>({r,x:B+(+r.getAttribute('x'))/W*(E-B),
w:(+r.getAttribute('width'))/W*(E-B),y:+r.getAttribute('y'),h:+r.getAttribute('height'),l:r.textContent.split('\n')[0]}));
const marks=[...inner.querySelectorAll('.marks>g')].map(g=>({g,x:B+(+g.dataset.x)/W*(E-B)}));
const fmt=(v,u)=>{for(const[k,n]of[[1,'s'],[1e-3,'ms'],[1e-6,'µs'],[1e-9,'ns']])if(u>=k*.999||n=='ns'){const c=Math.max(0,
Math.ceil(-Math.log10(u/k)-1e-9));return (v/k).toFixed(c)+' '+n}};
function draw(){const k=W/(b-a);labels.textContent='';
for(const i of get()){const x=(i.x-a)*k,w=i.w*k,on=x<W&&x+w>0;i.r.style.display=on?'':'none';if(!on)continue;
i.r.setAttribute('x',Math.max(x,-9));i.r.setAttribute('width',Math.min(x+w,W+9)-Math.max(x,-9));
const v=Math.max(x,0),room=Math.min(x+w,W)-v;if(room>28&&i.l){const t=document.createElementNS(N,'text'),m=Math.floor((room-8)/6.2);
t.setAttribute('x',v+4);t.setAttribute('y',i.y+i.h-5);t.setAttribute('class','in');
t.textContent=i.l.length>m?i.l.slice(0,Math.max(1,m-1))+'…':i.l;labels.append(t)}}
for(const m of marks){const x=(m.x-a)*k;m.g.style.display=x>=-1&&x<=W?'':'none';m.g.setAttribute('transform','translate('+x+')')}
ticks.textContent='';let u=Math.pow(10,Math.floor(Math.log10((b-a)/5)));for(const f of[1,2,5,10])if((b-a)/(u*f)<=9){u*=f;break}
for(let t=Math.ceil(a/u)*u;t<=b;t+=u){const x=L+(t-a)*k,g=document.createElementNS(N,'line'),y=document.createElementNS(N,'text');
g.setAttribute('class','grid');g.setAttribute('x1',x);g.setAttribute('x2',x);g.setAttribute('y1',0);g.setAttribute('y2',d.floor);
y.setAttribute('x',x);y.setAttribute('y',+d.floor+16);y.setAttribute('text-anchor','middle');y.setAttribute('class','faint');
y.textContent=fmt(t,Math.max(u,1e-9));ticks.append(g,y)}}
const at=e=>{const r=s.getBoundingClientRect();return (e.clientX-r.left)*(+d.width)/r.width-L};
s.addEventListener('wheel',e=>{e.preventDefault();const x=at(e)/W,t=a+x*(b-a),f=Math.exp(e.deltaY*.0015);
const w=Math.min(E-B,Math.max(2e-7,(b-a)*f));a=Math.max(B,Math.min(E-w,t-x*w));b=a+w;draw()},{passive:false});
let from=null;s.addEventListener('pointerdown',e=>{from={x:at(e),a,w:b-a};s.setPointerCapture(e.pointerId)});
s.addEventListener('pointermove',e=>{if(!from)return;a=Math.max(B,Math.min(E-from.w,from.a-(at(e)-from.x)/W*from.w));b=a+from.w;draw()});
s.addEventListener('pointerup',()=>from=null);s.addEventListener('dblclick',()=>{a=B;b=E;draw()})}
)js";

// Two digits behind the point at the most: text of ours, not the user's.
std::string percent(double share) {
  const double p = 100 * share;
  const double rounded = p >= 10 ? std::round(p) : std::round(10 * p) / 10;
  return cat(rounded, " %");
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find("\n\n");
    out += cat("<p>", escaped(text.substr(0, end)), "</p>\n");
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return out;
}

// A short text stays in one line, a long one is cut and shown whole when the pointer rests on it.
std::string text_cell(const std::string& text, std::string_view kind) {
  constexpr size_t kShort = 26, kLong = 110;
  if (text.size() <= kLong) return cat("<td class=\"", kind, text.size() <= kShort ? " one" : "", "\">", escaped(text), "</td>");
  size_t end = kLong - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // between two letters
  return cat("<td class=\"", kind, "\" title=\"", escaped(text), "\">", escaped(text.substr(0, end)), "…</td>");
}

std::string cell(const std::string& text, Align align) {
  switch (align) {
    case Align::Left: return cat("<td>", escaped(text), "</td>");
    case Align::Code: return text_cell(text, "t");
    case Align::Right: return cat("<td class=n>", escaped(text), "</td>");
    case Align::Bar: break;
  }
  const double share = std::clamp(std::strtod(text.c_str(), nullptr), 0.0, 1.0);
  return cat("<td class=bar><i style=\"width:", std::round(60 * share), "px\"></i>", percent(share), "</td>");
}

std::string rows_of(const Table& table, size_t first, size_t last) {
  std::string out;
  for (size_t r = first; r < last; ++r) {
    TANDEM_CHECK(table.rows[r].size() == table.columns.size(), "a table's row ", r, " has ", table.rows[r].size(), " cells for ",
                 table.columns.size(), " columns");
    out += "<tr>";
    for (size_t c = 0; c < table.columns.size(); ++c) out += cell(table.rows[r][c], table.columns[c].align);
    out += "</tr>\n";
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;  // no other control character is one of HTML's
    }
  return out;
}

Page::Page(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)), sections_(1) {}

void Page::heading(std::string_view text) { sections_.push_back({std::string(text), {}}); }
void Page::paragraph(std::string_view text) { body() += paragraphs(text); }
void Page::preformatted(std::string_view text) { body() += cat("<pre>", escaped(text), "</pre>\n"); }

void Page::figures(const std::vector<Figure>& figures) {
  body() += "<div class=figures>";
  for (const Figure& f : figures) {
    body() += cat("<div class=figure><b>", escaped(f.value), "</b>", escaped(f.name));
    if (!f.note.empty()) body() += cat("<span>", escaped(f.note), "</span>");
    body() += "</div>";
  }
  body() += "</div>\n";
}

void Page::card(Tone tone, std::string_view title, std::string_view text) {
  const char* kind = tone == Tone::Good ? "card good" : tone == Tone::Warning ? "card warning" : "card";
  body() += cat("<div class=\"", kind, "\"><b>", escaped(title), "</b>", paragraphs(text), "</div>\n");
}

void Page::table(const Table& table, size_t shown) {
  if (table.rows.empty()) {
    body() += cat("<p class=none>", escaped(table.when_empty), "</p>\n");
    return;
  }
  std::string head = "<div class=scroll><table><tr>";
  for (const Table::Column& c : table.columns) {
    head += c.align == Align::Right ? "<th class=n" : "<th";
    if (!c.explained.empty()) head += cat(" title=\"", escaped(c.explained), "\"");
    head += cat(">", escaped(c.heading), "</th>");
  }
  head += "</tr>\n";
  const size_t n = table.rows.size(), first = n > shown + 3 ? shown : n;
  body() += cat(head, rows_of(table, 0, first), "</table></div>\n");
  if (first < n)
    body() += cat("<details><summary>", n - first, " more</summary>", head, rows_of(table, first, n), "</table></div></details>\n");
}

void Page::svg(std::string_view drawing) { body() += cat("<div class=scroll>", drawing, "</div>\n"); }

void Page::fold(std::string_view title) {
  body() += cat("<details><summary>", escaped(title), "</summary>\n");
  ++sections_.back().open_folds;
}

std::string Page::html() const {
  std::string text =
      cat("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n<title>",
          escaped(title_), "</title>\n<style>", kStyle, "</style></head>\n<body><main>\n<h1>", escaped(title_), "</h1>\n");
  text += cat("<div class=sub>", escaped(subtitle_), "</div>\n");
  bool has_timeline = false;
  for (const Section& s : sections_) {
    if (s.heading.empty() && s.body.empty()) continue;
    text += "<section>";
    if (!s.heading.empty()) text += cat("<h2>", escaped(s.heading), "</h2>\n");
    text += s.body;
    for (int i = 0; i < s.open_folds; ++i) text += "</details>";
    text += "</section>\n";
    has_timeline |= s.body.find("class=\"drawing timeline\"") != std::string::npos;
  }
  text += "</main>";
  if (has_timeline) text += cat("<script>", kScript, "</script>");
  return text + "</body></html>\n";
}

}  // namespace tandem::profile

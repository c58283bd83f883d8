//! `#[derive(Equivalence)]`: implements `typepack::Equivalence` for a struct. See the documentation of that trait.
//!
//! The macro runs while a program is compiled. The code that it writes names only items of the crate `typepack`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Member, parse_macro_input};

/// Implements `typepack::Equivalence` for a struct whose fields all implement it. The datatype has one block for each
/// field, in the order of the declaration, at the offset that the compiler has chosen. Its extent is the size of the
/// struct.
#[doc(alias = "MPI_Type_create_struct")]
#[proc_macro_derive(Equivalence)]
pub fn equivalence(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implementation(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = fields_of(input)?;
    if let Some(parameter) = input.generics.params.first() {
        let detail = "Equivalence cannot be derived for a generic struct, because a datatype belongs to one layout; \
                      derive it for a struct without parameters";
        return Err(Error::new(parameter.span(), detail));
    }
    let name = &input.ident;
    let (mut entries, mut checks) = (Vec::new(), Vec::new());
    for (place, field) in fields.iter().enumerate() {
        let member: Member = match &field.ident {
            Some(ident) => ident.clone().into(),
            None => place.into(),
        };
        let ty = &field.ty;
        // The code has the span of the field's type, so the compiler's error about a type without a datatype points at
        // the field.
        entries.push(quote_spanned! { ty.span() =>
            (
                ::core::mem::offset_of!(#name, #member),
                ::core::mem::size_of::<#ty>(),
                <#ty as ::typepack::Equivalence>::datatype()?,
            )
        });
        checks.push(quote_spanned! { ty.span() =>
            ::core::assert!(
                ::core::mem::offset_of!(#name, #member) + ::core::mem::size_of::<#ty>()
                    <= ::core::mem::size_of::<#name>(),
                "a field ends outside its struct"
            );
        });
    }
    Ok(quote! {
        const _: () = {
            #(#checks)*

            // SAFETY: the blocks of the datatype are the fields of the struct, at their offsets. All fields implement
            // `Equivalence`, so the bytes of their blocks are initialised, and the fields may have any values there.
            // The other bytes of the struct are in no block.
            #[automatically_derived]
            unsafe impl ::typepack::Equivalence for #name {
                fn datatype() -> ::typepack::Result<::typepack::Datatype> {
                    ::typepack::equivalence::of_fields(::core::mem::size_of::<#name>(), &[#(#entries),*])
                }

                fn plan() -> ::typepack::Result<&'static ::typepack::Plan> {
                    static PLAN: ::typepack::equivalence::Kept = ::typepack::equivalence::Kept::new();
                    PLAN.plan::<#name>()
                }
            }

            #[automatically_derived]
            impl ::typepack::equivalence::Single for #name {}
        };
    })
}

/// Returns the fields of a struct that can have a datatype.
fn fields_of(input: &DeriveInput) -> syn::Result<&Fields> {
    let refused = |what: &str| {
        let detail =
            format!("Equivalence can be derived only for a struct with fields; this is {what}");
        Err(Error::new(input.ident.span(), detail))
    };
    match &input.data {
        Data::Struct(data) if data.fields.is_empty() => refused("a struct without fields"),
        Data::Struct(data) => Ok(&data.fields),
        Data::Enum(_) => refused("an enum, not all of whose bit patterns are valid"),
        Data::Union(_) => refused("a union, whose fields overlap"),
    }
}
